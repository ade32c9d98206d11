import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { BadHarborInput, TaskChanged, TaskUnreachable } from '../errors.ts';
import { taskDigest } from '../task-folder.ts';
import { commitOf } from './git.ts';
import { TaskCache } from './task-cache.ts';
import { indexTasks } from './task-index.ts';
import type { TaskPin } from './task-pins.ts';
import { TaskShelf } from './task-shelf.ts';

const ENVIRONMENT = { environment: { type: 'docker' } };
const MODULES = join(import.meta.dirname);

let top: string;
let repo: string;
let url: string;

async function git(...args: string[]): Promise<string> {
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@localhost', '-c', 'commit.gpgsign=false'];
  return (await execa('git', [...who, '-C', repo, ...args])).stdout;
}

async function makeTask(dir: string, instruction: string): Promise<void> {
  for (const part of ['environment', 'tests']) await mkdir(join(dir, part), { recursive: true });
  await writeFile(join(dir, 'task.toml'), '[task]\nname = "lab/one"\n');
  await writeFile(join(dir, 'instruction.md'), instruction);
  await writeFile(join(dir, 'environment/data'), '7\n');
  await writeFile(join(dir, 'tests/test.sh'), '#!/bin/sh\necho 1 > /logs/verifier/reward.txt\n');
  await chmod(join(dir, 'tests/test.sh'), 0o755);
}

beforeAll(async () => {
  top = await mkdtemp(join(tmpdir(), 'stillroom-sources-'));
  repo = join(top, 'repo');
  url = `file://${repo}`;
  await mkdir(repo);
  await git('init', '--quiet', '--initial-branch=main');
  await git('config', 'uploadpack.allowAnySHA1InWant', 'true');
  for (const name of ['one', 'two']) await makeTask(join(repo, 'tasks', name), `do ${name}`);
  await git('add', '-A');
  await git('commit', '--quiet', '-m', 'first');
  await git('tag', '-a', 'v1', '-m', 'v1');
});
afterAll(() => rm(top, { recursive: true, force: true }));

let places = 0;
async function place() {
  places += 1;
  const projectRoot = join(top, `project-${places}`);
  await mkdir(projectRoot, { recursive: true });
  const dir = join(projectRoot, 'cache');
  return { projectRoot, dir, cache: new TaskCache({ dir, projectRoot }) };
}

/** Pins tasks that a template names. */
async function pinned(
  template: object,
  ids: string[],
  { projectRoot, cache }: Awaited<ReturnType<typeof place>>,
): Promise<readonly TaskPin[]> {
  const pins = cache.pinning();
  const index = await indexTasks({ ...ENVIRONMENT, ...template } as Parameters<typeof indexTasks>[0], projectRoot, pins.reader);
  return pins.pin((await index.find(ids)).filter((task) => task !== null));
}

const only = async (pins: Promise<readonly TaskPin[]>) => (await pins)[0] as TaskPin;
const wholeOf = async (dir: string) => (await readdir(dir)).filter((name) => name !== 'commits');

describe('tasks of a repository', () => {
  test('are pinned by the commit that their ref is at, and stay what they are when it moves on', async () => {
    const here = await place();
    const first = await git('rev-parse', 'main');
    const pin = await only(pinned({ tasks: [{ path: 'tasks/one', git_url: url, git_commit_id: 'main' }] }, ['one'], here));
    expect(pin).toMatchObject({ id: 'one', path: 'tasks/one', source: { url, commit: first } });
    await makeTask(join(repo, 'tasks/one'), 'do something else');
    await git('commit', '--quiet', '-am', 'second');

    const elsewhere = await place(); // another machine, with the pin from history
    const opened = await elsewhere.cache.open(pin);
    expect(await readFile(join(opened, 'instruction.md'), 'utf8')).toBe('do one');
    expect(await taskDigest(opened)).toBe(pin.digest);
    const again = await only(pinned({ tasks: [{ path: 'tasks/one', git_url: url }] }, ['one'], here));
    expect([again.digest === pin.digest, again.source?.commit]).toEqual([false, await git('rev-parse', 'main')]);
  });

  test('have one commit for all that a run pins, also when its branch moves between two splits', async () => {
    const { cache, projectRoot } = await place();
    const pins = cache.pinning();
    const template = {
      ...ENVIRONMENT,
      tasks: ['one', 'two'].map((name) => ({ path: `tasks/${name}`, git_url: url, git_commit_id: 'main' })),
    };
    const index = await indexTasks(template, projectRoot, pins.reader);
    const pin = async (id: string) => (await pins.pin((await index.find([id])).filter((task) => task !== null)))[0];
    const train = await pin('one');
    await makeTask(join(repo, 'tasks/two'), 'do another thing');
    await git('commit', '--quiet', '-am', 'between');
    const holdout = await pin('two');
    expect(holdout?.source).toEqual(train?.source);
    expect(train?.source?.commit).not.toBe(await git('rev-parse', 'main'));
  });

  test('a tag means its commit; what is no ref is named', async () => {
    expect(await commitOf(url, 'v1')).toBe(await git('rev-parse', 'v1^{commit}'));
    await expect(commitOf(url, 'nope')).rejects.toThrow(/has no branch or tag nope/);
    const gone = pinned({ tasks: [{ path: 'tasks/three', git_url: url }] }, ['three'], await place());
    await expect(gone).rejects.toThrow(/there is no folder tasks\/three of file:/);
    await expect(commitOf(`file://${top}/nowhere`, null)).rejects.toThrow(BadHarborInput);
    await expect(commitOf('http://127.0.0.1:1/r.git', null)).rejects.toThrow(TaskUnreachable);
  });

  test('of a dataset and of a registry file are found by name, through its filters', async () => {
    const here = await place();
    const registry = [
      { name: 'set', version: '1.0', tasks: ['one', 'two'].map((name) => ({ name, git_url: url, path: `tasks/${name}` })) },
    ];
    await writeFile(join(here.projectRoot, 'registry.json'), JSON.stringify(registry));
    const dataset = { name: 'set', registry_path: 'registry.json', exclude_task_names: ['t*'] };
    expect(await only(pinned({ datasets: [dataset] }, ['one'], here))).toMatchObject({ id: 'one', source: { url } });
    await expect(pinned({ datasets: [dataset] }, ['two'], here)).rejects.toThrow(/task "two" is not in .*dataset set of registry\.json/);
    const misnamed = pinned({ datasets: [{ ...dataset, name: 'sat' }] }, ['one'], here);
    await expect(misnamed).rejects.toThrow(/datasets\.0: registry\.json has no dataset sat; did you mean "set"/);
  });
});

describe('the cache', () => {
  test('fetches a task once, however many trials and processes ask at once', async () => {
    const here = await place();
    const pin = await only(pinned({ tasks: [{ path: 'tasks/two', git_url: url }] }, ['two'], here));
    const { dir, projectRoot } = await place();
    const script = `import { TaskCache } from ${JSON.stringify(join(MODULES, 'task-cache.ts'))};
      const cache = new TaskCache(${JSON.stringify({ dir, projectRoot })});
      console.log((await Promise.all([1, 2, 3].map(() => cache.open(${JSON.stringify(pin)})))).join('\\n'));`;
    const processes = [1, 2, 3].map(() => execa(process.execPath, ['--input-type=module', '-e', script]));
    const folders = new Set((await Promise.all(processes)).flatMap(({ stdout }) => stdout.split('\n')));
    expect([...folders]).toEqual([join(dir, pin.digest.slice('sha256:'.length), 'two')]);
    expect(await wholeOf(dir)).toEqual([pin.digest.slice('sha256:'.length)]);
  });

  test('uses nothing of a fetch that was killed, and nothing that somebody changed', async () => {
    const here = await place();
    const pin = await only(pinned({ tasks: [{ path: 'tasks/two', git_url: url }] }, ['two'], here));
    const { dir, cache } = await place();
    const partial = join(dir, '.partial-killed/task');
    await mkdir(partial, { recursive: true });
    await writeFile(join(partial, 'instruction.md'), 'half');
    const opened = await cache.open(pin);
    await writeFile(join(opened, 'instruction.md'), 'poisoned');
    await writeFile(join(opened, 'more'), 'x');
    expect(await taskDigest(await cache.open(pin))).toBe(pin.digest);
  });

  test('a local task that was edited is refused by name; one that was opened before stays as it was pinned', async () => {
    const { cache, projectRoot, dir } = await place();
    for (const name of ['early', 'late']) await makeTask(join(projectRoot, 'tasks', name), `do ${name}`);
    const here = { cache, projectRoot, dir };
    const [early, late] = (await pinned({ datasets: [{ path: 'tasks' }] }, ['early', 'late'], here)) as [TaskPin, TaskPin];
    await cache.open(early);
    for (const name of ['early', 'late']) await writeFile(join(projectRoot, 'tasks', name, 'instruction.md'), 'changed');
    expect(await readFile(join(await cache.open(early), 'instruction.md'), 'utf8')).toBe('do early');
    await expect(cache.open(late)).rejects.toThrow(TaskChanged);
    await expect(cache.open(late)).rejects.toThrow(/task late is not what the run pinned: tasks\/late .*Put it back/);
  });

  test('a trial that is cancelled does not take the task from another that waits for the same fetch', async () => {
    const here = await place();
    const pin = await only(pinned({ tasks: [{ path: 'tasks/two', git_url: url }] }, ['two'], here));
    const { cache } = await place();
    const first = new AbortController();
    const [cancelled, other] = [cache.open(pin, first.signal), cache.open(pin, new AbortController().signal)];
    first.abort(new Error('cancelled'));
    const [ended, opened] = await Promise.allSettled([cancelled, other]);
    expect([ended.status, opened.status]).toEqual(['rejected', 'fulfilled']);
    await expect(cache.open(pin, AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
  });

  test('a task that is itself a link out of the project, or out of its repository, is refused', async () => {
    const here = await place();
    await makeTask(join(top, 'outside'), 'of the host');
    await mkdir(join(here.projectRoot, 'tasks'));
    await symlink(join(top, 'outside'), join(here.projectRoot, 'tasks/alias'));
    await expect(pinned({ datasets: [{ path: 'tasks' }] }, ['alias'], here)).rejects.toThrow(/alias is not below the project root/);
    const digest = await taskDigest(join(top, 'outside'));
    await expect(here.cache.open({ id: 'alias', path: 'tasks/alias', digest })).rejects.toThrow(
      /tasks\/alias is not below the project root/,
    );

    await symlink(top, join(repo, 'host'));
    await symlink(join(top, 'outside'), join(repo, 'tasks/alias'));
    await git('add', '-A');
    await git('commit', '--quiet', '-m', 'links');
    for (const path of ['tasks/alias', 'host/outside'])
      await expect(pinned({ tasks: [{ path, git_url: url }] }, [path.split('/')[1] as string], here)).rejects.toThrow(BadHarborInput);
  });

  test('a link that leads out of a task is refused', async () => {
    const { cache, projectRoot, dir } = await place();
    await makeTask(join(projectRoot, 'tasks/out'), 'x');
    await symlink('../../../../secret', join(projectRoot, 'tasks/out/environment/leak'));
    await writeFile(join(top, 'secret'), 'secret');
    const pin = pinned({ datasets: [{ path: 'tasks' }] }, ['out'], { cache, projectRoot, dir });
    await expect(pin).rejects.toThrow(/environment\/leak of task .*out is a link/);
  });

  test('is cleared of what nobody used for long', async () => {
    const { cache, projectRoot, dir } = await place();
    await makeTask(join(projectRoot, 'tasks/one'), 'x');
    const pin = await only(pinned({ datasets: [{ path: 'tasks' }] }, ['one'], { cache, projectRoot, dir }));
    await cache.open(pin);
    await cache.sweep();
    expect(await wholeOf(dir)).toHaveLength(1);
    await new TaskShelf(dir).sweep(Date.now() + 31 * 24 * 3600_000);
    expect(await wholeOf(dir)).toEqual([]);
  });
});
