import { appendFile, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FileObjectStore } from '../services/blobs/file-object-store.ts';
import { listed } from '../services/blobs/object-store.ts';
import { runFiles } from './run-files.ts';

let root: string;
let objects: FileObjectStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'run-files-'));
  objects = new FileObjectStore(join(root, 'store'));
});
afterEach(() => rm(root, { recursive: true }));

/** A worker on a machine of its own: it shares the store and nothing else. */
function machine(name: string) {
  const folderOf = runFiles(objects, join(root, name));
  const files = () => folderOf({ runId: 'r', runDir: 'runs/r' });
  const path = (file: string) => join(root, name, 'runs/r', file);
  return {
    close: (step: number, loss = 0, order: unknown = { step, loss }) =>
      files().keepRow('rows', step, order, async () => ({ row: { step, loss } })),
    write: (file: string, text: string) => files().write(file, text),
    mirror: () => files().mirror(),
    path,
    text: (file: string) => readFile(path(file), 'utf8'),
    steps: async () =>
      (await readFile(path('metrics.jsonl'), 'utf8'))
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as object),
  };
}

it('a step that is closed twice has one row, the first one', async () => {
  const [one, other] = [machine('one'), machine('other')];
  await one.close(1);
  const first = await one.close(2, 0.5, 'order');
  expect(await other.close(2, 0.7, 'order')).toEqual(first);
  expect(await one.close(2, 0.9, 'order')).toEqual(first);
  const expected = [
    { step: 1, loss: 0 },
    { step: 2, loss: 0.5 },
  ];
  expect(await one.steps()).toEqual(expected);
  expect(await other.steps()).toEqual(expected);
});

it('a step that is closed twice at once has one row', async () => {
  const closing = [machine('one'), machine('other')].map((worker, i) => worker.close(1, i, 'order'));
  const [first, second] = await Promise.all(closing);
  expect(first).toEqual(second);
  expect(await listed(objects, 'runs/r/rows/')).toHaveLength(1);
});

it('steps that workers close in turn are all in the file of the one that closed last', async () => {
  const workers = [machine('one'), machine('other')] as const;
  for (let step = 1; step <= 6; step++) await workers[step % 2 === 0 ? 1 : 0].close(step);
  expect(await workers[1].steps()).toEqual([1, 2, 3, 4, 5, 6].map((step) => ({ step, loss: 0 })));
});

it('steps that are done anew replace those from there on', async () => {
  const worker = machine('one');
  for (const step of [1, 2, 3, 4]) await worker.close(step);
  await worker.close(2, 0.2);
  expect(await worker.steps()).toEqual([
    { step: 1, loss: 0 },
    { step: 2, loss: 0.2 },
  ]);
  await worker.close(3, 0.3);
  await worker.close(3, 0.3);
  expect(await worker.steps()).toMatchObject([{ step: 1 }, { step: 2, loss: 0.2 }, { step: 3, loss: 0.3 }]);
  expect(await machineAfterRestart()).toEqual(await worker.steps());
});

async function machineAfterRestart() {
  const fresh = machine('fresh');
  await fresh.mirror();
  return fresh.steps();
}

it('a file that is as it was left is not written again, only added to', async () => {
  const worker = machine('one');
  await worker.close(1);
  const reads: string[] = [];
  const get = objects.get.bind(objects);
  objects.get = (key) => {
    reads.push(key);
    return get(key);
  };
  await worker.close(2);
  await worker.close(3);
  expect(reads).toEqual(['runs/r/rows/000002/0001', 'runs/r/rows/000003/0001']);
});

it.each([
  ['half a line at its end', (path: string) => appendFile(path, '{"step":2,"lo')],
  ['a line too many', (path: string) => appendFile(path, '{"step":1,"loss":0}\n')],
  ['other lines', (path: string) => writeFile(path, 'mine\n')],
  ['nothing', (path: string) => rm(path)],
])('a file with %s is mended', async (_, damage) => {
  const worker = machine('one');
  await worker.close(1);
  await damage(worker.path('metrics.jsonl'));
  await worker.close(2);
  expect(await worker.steps()).toMatchObject([{ step: 1 }, { step: 2 }]);
});

it('a folder is completed with what others wrote, and what is as it should be is left alone', async () => {
  const [one, other] = [machine('one'), machine('other')];
  await one.write('eval-teacher.json', '{"executed": 3}\n');
  await one.write('same.json', '1\n');
  await other.write('gate.json', '{}\n');
  await one.close(1);
  await other.close(2);
  await one.mirror();
  await utimes(one.path('same.json'), 0, 0);
  await one.mirror();
  expect((await readFile(one.path('gate.json'), 'utf8')).trim()).toBe('{}');
  expect(await one.steps()).toHaveLength(2);
  await other.mirror();
  expect(await other.text('eval-teacher.json')).toBe('{"executed": 3}\n');
  expect((await stat(one.path('same.json'))).mtimeMs).toBe(0);
});

it('a folder that another run has on this machine is not mixed with it', async () => {
  const worker = machine('one');
  await worker.write('status.json', '{}');
  await writeFile(worker.path('run.json'), '{"runId": "second"}');
  await expect(worker.mirror()).rejects.toThrow(/belongs to run second/);
});
