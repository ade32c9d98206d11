import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AdapterStore } from './adapter-store.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'adapters-'));
});
afterEach(() => rm(root, { recursive: true }));

const card = (version: number) => ({ 'card.md': `version ${version}` });

it('numbers versions from 1 and moves the champion', async () => {
  const store = new AdapterStore(root);
  await store.save('turn', 'run-a', card);
  const second = await store.save('turn', 'run-b', card);
  expect(second.version).toBe(2);
  expect(await readFile(join(second.path, 'card.md'), 'utf8')).toBe('version 2');
  expect(await store.champion('turn')).toBe(2);
});

it('saving the same thing again makes no second version', async () => {
  const store = new AdapterStore(root);
  const [first, again] = [await store.save('turn', 'run-a', card), await store.save('turn', 'run-a', card)];
  expect(again).toEqual(first);
  expect((await readdir(join(root, 'turn'))).sort()).toEqual(['index.json', 'v1']);
});

it('never uses a number again, also when the folder was deleted', async () => {
  const store = new AdapterStore(root);
  const { path } = await store.save('turn', 'run-a', card);
  await rm(path, { recursive: true });
  expect((await store.save('turn', 'run-b', card)).version).toBe(2);
});

it('names a damaged index and writes nothing', async () => {
  const store = new AdapterStore(root);
  await store.save('turn', 'run-a', card);
  await writeFile(join(root, 'turn', 'index.json'), '{"lastVersion": "one"}');
  await expect(store.save('turn', 'run-b', card)).rejects.toThrow(/index\.json/);
  expect(await readdir(join(root, 'turn'))).not.toContain('v2');
});

it.each(['', '../x', 'a/b', '.hidden'])('refuses the name %j', async (name) => {
  await expect(new AdapterStore(root).save(name, 'run-a', card)).rejects.toThrow(/adapter name/);
});
