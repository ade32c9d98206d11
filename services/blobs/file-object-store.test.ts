import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FileObjectStore } from './file-object-store.ts';
import type { ObjectEntry } from './object-store.ts';

let root: string;
let store: FileObjectStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'objects-'));
  store = new FileObjectStore(root);
});
afterEach(() => rm(root, { recursive: true }));

const bytes = (text: string) => new TextEncoder().encode(text);
const textAt = async (key: string) => new TextDecoder().decode((await store.get(key)) ?? bytes('nothing'));
const entriesBelow = async (prefix: string) => {
  const entries: ObjectEntry[] = [];
  for await (const entry of store.list(prefix)) entries.push(entry);
  return entries;
};
const keysBelow = async (prefix: string) => (await entriesBelow(prefix)).map(({ key }) => key);

it('puts, reads, replaces and deletes', async () => {
  expect(await store.get('a/b')).toBeNull();
  await store.put('a/b', bytes('one'));
  await store.put('a/b', bytes('two'));
  expect(await textAt('a/b')).toBe('two');
  await store.delete('a/b');
  await store.delete('a/b');
  expect(await store.has('a/b')).toBe(false);
});

it('of many who create the same key at once one is told that it did, and its bytes are there', async () => {
  const told = await Promise.all(Array.from({ length: 20 }, (_, i) => store.create('k', bytes(`${i}`))));
  expect(told.filter(Boolean)).toHaveLength(1);
  expect(await textAt('k')).toBe(`${told.indexOf(true)}`);
  expect(await store.create('k', bytes('late'))).toBe(false);
});

it('lists what is below a prefix in the order of the keys, with sizes, and no unfinished write', async () => {
  for (const key of ['runs/b', 'runs/a/2', 'runs/a/10', 'runs/a.b/1', 'other']) await store.put(key, bytes(key));
  await writeFile(join(root, 'runs/a/3.x.partial'), 'half');
  expect(await keysBelow('')).toEqual(['other', 'runs/a.b/1', 'runs/a/10', 'runs/a/2', 'runs/b']);
  expect(await entriesBelow('runs/a/')).toMatchObject([{ key: 'runs/a/10', bytes: 9 }, { key: 'runs/a/2' }]);
  expect(await keysBelow('nowhere/')).toEqual([]);
});

it.each(['', '/', 'a//b', '../a', 'a/..', 'a b', 'a/'])('refuses the key %j', async (key) => {
  await expect(store.put(key, bytes(''))).rejects.toMatchObject({ name: 'BadObjectKey' });
});

it('makes its folders again when somebody removed them while it ran', async () => {
  await store.put('a/b', bytes('one'));
  await rm(join(root, 'a'), { recursive: true });
  await store.put('a/b', bytes('one'));
  expect(await textAt('a/b')).toBe('one');
});
