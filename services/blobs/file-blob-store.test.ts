import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { BlobRef } from '../../core/ids.ts';
import { FileBlobStore } from './file-blob-store.ts';

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'blobs-'));
});
afterEach(() => rm(root, { recursive: true }));

const bytes = new TextEncoder().encode('a span');

it('gives back what was put, under the sha256 of its bytes', async () => {
  const store = new FileBlobStore(root);
  const ref = await store.put(bytes);
  expect(ref).toBe('sha256:1db0a5ab15d3350eff37779bcc7b9302919ae7cff61b40bc25b5e5d770719e10');
  expect(new Uint8Array(await store.get(ref))).toEqual(bytes);
  expect(await new FileBlobStore(root).has(ref)).toBe(true);
});

it('keeps one file for equal bytes put twice at once, and no partial file', async () => {
  const store = new FileBlobStore(root);
  const [one, two] = await Promise.all([store.put(bytes), store.put(bytes)]);
  expect(one).toBe(two);
  expect(await readdir(join(root, one.slice(7, 9)))).toEqual([one.slice(7)]);
});

it.each(['sha256:00', 'nonsense', `sha256:${'0'.repeat(64)}`])('names an unknown ref: %s', async (ref) => {
  await expect(new FileBlobStore(root).get(ref as BlobRef)).rejects.toMatchObject({ name: 'BlobMissing', ref });
});

it('refuses bytes that were changed on disk', async () => {
  const store = new FileBlobStore(root);
  const ref = await store.put(bytes);
  await writeFile(join(root, ref.slice(7, 9), ref.slice(7)), 'another span');
  await expect(store.get(ref)).rejects.toMatchObject({ name: 'BlobCorrupt' });
});

it('makes its folders again when somebody removed them while it ran', async () => {
  const store = new FileBlobStore(root);
  const ref = await store.put(bytes);
  await rm(join(root, ref.slice(7, 9)), { recursive: true });
  expect(await store.put(bytes)).toBe(ref);
  expect(new Uint8Array(await store.get(ref))).toEqual(bytes);
});

it('putting bytes again replaces a file that was cut short', async () => {
  const store = new FileBlobStore(root);
  const ref = await store.put(bytes);
  await writeFile(join(root, ref.slice(7, 9), ref.slice(7)), 'a s');
  await store.put(bytes);
  expect(new Uint8Array(await store.get(ref))).toEqual(bytes);
});
