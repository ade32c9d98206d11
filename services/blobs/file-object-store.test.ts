import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FileObjectStore } from './file-object-store.ts';
import { listed } from './object-store.ts';
import { openObjectStore } from './open.ts';

let root: string;
let store: FileObjectStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'objects-'));
  store = new FileObjectStore(root);
});
afterEach(() => rm(root, { recursive: true }));

const bytes = new TextEncoder().encode('one');

it('lists no unfinished write', async () => {
  await mkdir(join(root, 'a'));
  await writeFile(join(root, 'a/3.x.partial'), 'half');
  await store.put('a/2', bytes);
  expect((await listed(store, 'a/')).map(({ key }) => key)).toEqual(['a/2']);
});

it('makes its folders again when somebody removed them while it ran', async () => {
  await store.put('a/b', bytes);
  await rm(join(root, 'a'), { recursive: true });
  await store.put('a/b', bytes);
  expect(await store.get('a/b')).toEqual(Buffer.from(bytes));
});

it('a folder that is a file is refused when the store is opened, by its name', async () => {
  const path = join(root, 'file');
  await writeFile(path, '');
  await expect(openObjectStore({ blobStore: { kind: 'folder', path } })).rejects.toMatchObject({
    name: 'ObjectStoreUnusable',
    message: expect.stringMatching(/^the blob store .*file cannot be used/),
  });
});

it('opening leaves nothing in the store', async () => {
  expect(await listed(await openObjectStore({ blobStore: { kind: 'folder', path: root } }), '')).toEqual([]);
});
