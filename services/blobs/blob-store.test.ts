import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { BlobRef } from '../../core/ids.ts';
import { BlobStore } from './blob-store.ts';
import { FileObjectStore } from './file-object-store.ts';

const DIGEST = '1db0a5ab15d3350eff37779bcc7b9302919ae7cff61b40bc25b5e5d770719e10';
const bytes = new TextEncoder().encode('a span');

let root: string;
let store: BlobStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'blobs-'));
  store = new BlobStore(new FileObjectStore(root));
});
afterEach(() => rm(root, { recursive: true }));

const fileOf = (runId: string) => join(root, 'runs', runId, 'blobs', DIGEST.slice(0, 2), DIGEST);

it('gives back what was put, under the run and the sha256 of its bytes', async () => {
  const ref = await store.of('night-1').put(bytes);
  expect(ref).toBe(`night-1/sha256:${DIGEST}`);
  expect(new Uint8Array(await store.get(ref))).toEqual(bytes);
  expect(await new BlobStore(new FileObjectStore(root)).has(ref)).toBe(true);
});

it('equal bytes of two runs are two blobs: each goes with its run', async () => {
  const [one, two] = await Promise.all([store.of('a').put(bytes), store.of('b').put(bytes)]);
  await rm(join(root, 'runs', 'a'), { recursive: true });
  expect(await store.has(one)).toBe(false);
  expect(new Uint8Array(await store.get(two))).toEqual(bytes);
});

it.each(['sha256:00', 'nonsense', `sha256:${DIGEST}`, `a/sha256:${'0'.repeat(64)}`, `../a/sha256:${DIGEST}`])(
  'names an unknown ref: %s',
  async (ref) => {
    await expect(store.get(ref as BlobRef)).rejects.toMatchObject({ name: 'BlobMissing', ref });
  },
);

it('refuses bytes that were changed on disk, and putting them again mends them', async () => {
  const ref = await store.of('a').put(bytes);
  for (const damaged of ['b span', 'a s']) {
    await writeFile(fileOf('a'), damaged);
    await expect(store.get(ref)).rejects.toMatchObject({ name: 'BlobCorrupt' });
  }
  await store.of('a').put(bytes);
  expect(new Uint8Array(await store.get(ref))).toEqual(bytes);
});
