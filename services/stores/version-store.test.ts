import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { StoreProblem } from './version-refs.ts';
import { VersionStore } from './version-store.ts';

let root: string;
let store: VersionStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'versions-'));
  store = new VersionStore(root, 'adapter');
});
afterEach(() => rm(root, { recursive: true }));

const files = (version: number) => ({ 'card.md': `version ${version}` });
const save = (key: string, name = 'turn', alias?: string | null) =>
  store.save({ name, key, files, ...(alias === undefined ? {} : { alias }) });
const versionOf = async (ref: string | null) => (await store.resolve('turn', ref)).version;
const kind = (expected: StoreProblem) => expect.objectContaining({ kind: expected });

it('numbers versions from 1 and moves the champion', async () => {
  await save('run-a');
  const second = await save('run-b');
  expect(second.version).toBe(2);
  expect(await readFile(join(second.path, 'card.md'), 'utf8')).toBe('version 2');
  expect(await store.resolve('turn', null)).toEqual(second);
});

it('saving the same thing again makes no second version', async () => {
  const [first, again] = [await save('run-a'), await save('run-a')];
  expect(again).toEqual(first);
  expect((await readdir(join(root, 'turn'))).sort()).toEqual(['aliases.toml', 'v1']);
});

it('never uses a number again, also when the folder was deleted', async () => {
  const { path } = await save('run-a');
  await rm(path, { recursive: true });
  expect((await save('run-b')).version).toBe(2);
});

it('never uses the number of a version again that only an older hand had made', async () => {
  await mkdir(join(root, 'turn/v7'), { recursive: true });
  await store.setAlias('turn', 'old', 7);
  await rm(join(root, 'turn/v7'), { recursive: true });
  expect((await save('run-a')).version).toBe(8);
});

it('gives a number back to nobody, whatever an alias says and however many versions were deleted', async () => {
  for (const key of ['a', 'b', 'c']) await save(key, 'turn', null);
  await store.setAlias('turn', 'good', 2);
  for (const version of [1, 2, 3]) await rm(join(root, `turn/v${version}`), { recursive: true });
  expect((await save('a', 'turn', null)).version).toBe(4);
  await expect(versionOf('good')).rejects.toThrow(kind('dangling_alias'));
});

it('names a damaged index and writes nothing', async () => {
  await save('run-a');
  await writeFile(join(root, 'turn/aliases.toml'), '[aliases');
  await expect(save('run-b')).rejects.toThrow(/aliases\.toml is not a store index/);
  expect(await readdir(join(root, 'turn'))).not.toContain('v2');
});

it('moves no alias, or another one, when told so', async () => {
  await save('run-a');
  await save('run-b', 'turn', null);
  await save('run-c', 'turn', 'candidate');
  expect(await versionOf(null)).toBe(1);
  expect(await versionOf('candidate')).toBe(3);
});

describe('an alias', () => {
  it('to a version that is gone is an error that says what there is', async () => {
    await save('run-a');
    const { path } = await save('run-b');
    await rm(path, { recursive: true });
    await expect(versionOf(null)).rejects.toThrow(/alias champion points at v2, which is gone; set it to one of v1/);
    expect(await versionOf('v1')).toBe(1);
  });

  it('by any other name that dangles is an error too', async () => {
    await save('run-a', 'turn', 'good');
    await rm((await save('run-b', 'turn', 'best')).path, { recursive: true });
    await expect(versionOf('best')).rejects.toThrow(kind('dangling_alias'));
    expect(await versionOf('good')).toBe(1);
    expect(await versionOf(null)).toBe(1);
  });

  it('that reads like a version is not looked at, should an older hand have written one', async () => {
    await save('run-a');
    await writeFile(join(root, 'turn/aliases.toml'), '[aliases]\n3 = 1\nv3 = 1\n');
    for (const ref of ['3', 'v3']) await expect(versionOf(ref)).rejects.toThrow(kind('no_such_version'));
  });

  it.each(['3', 'v3', '003', '', 'a b', '../x', 'best\n', '\u0663', 'é'])('cannot be %j', async (alias) => {
    await save('run-a');
    await expect(store.setAlias('turn', alias, 1)).rejects.toThrow(kind('invalid_alias'));
    await expect(save('run-b', 'turn', alias)).rejects.toThrow(kind('invalid_alias'));
    expect(await readdir(join(root, 'turn'))).not.toContain('v2');
  });

  it('whose value in the file is no whole number names no version', async () => {
    await save('run-a');
    await save('run-b');
    await writeFile(join(root, 'turn/aliases.toml'), '[aliases]\nchampion = true\nold = 1.0\n');
    expect(await versionOf(null)).toBe(2);
    await expect(versionOf('old')).rejects.toThrow(kind('no_such_version_or_alias'));
  });
});

it.each(['²', '٣', 'v٣', '3\n'])('reads no version in %j', async (ref) => {
  await save('run-a');
  await save('run-b');
  await save('run-c');
  await expect(versionOf(ref)).rejects.toThrow(kind('no_such_version_or_alias'));
});

it.each(['a', '9x', 'a.b-c_d', 'A'])('takes the name %j', async (name) => {
  expect((await save('run-a', name)).version).toBe(1);
});

const fullWidthA = '\uff41';
const kelvin = '\u212a';
it.each(['', '../x', 'a/b', '.hidden', '-x', 'name\n', '\nname', 'é', '\u0663', 'x\u0663', fullWidthA, kelvin])(
  'refuses the name %j',
  async (name) => {
    await expect(save('run-a', name)).rejects.toThrow(/adapter name/);
    await expect(store.resolve(name, null)).rejects.toThrow(kind('invalid_name'));
  },
);
