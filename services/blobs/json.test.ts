import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { z } from 'zod';
import { BlobStore } from './blob-store.ts';
import { FileObjectStore } from './file-object-store.ts';
import { getJson, putJson, readJson } from './json.ts';

let root: string;
let blobs: BlobStore;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'blob-json-'));
  blobs = new BlobStore(new FileObjectStore(root));
});
afterAll(() => rm(root, { recursive: true }));

const Places = z.array(z.strictObject({ place: z.int() }));

it('a value comes back as it was stored', async () => {
  const ref = await putJson(blobs.of('r'), [{ place: 3 }]);
  expect(await readJson(blobs, ref)).toEqual([{ place: 3 }]);
  expect(await getJson(blobs, ref, Places)).toEqual([{ place: 3 }]);
});

it('what is not as expected is refused by its field', async () => {
  const ref = await putJson(blobs.of('r'), [{ place: 3 }, { place: 'x' }]);
  await expect(getJson(blobs, ref, Places)).rejects.toMatchObject({
    name: 'BlobUnexpected',
    message: expect.stringContaining('1.place: '),
  });
});

it('a blob that is no JSON is refused by its ref', async () => {
  const ref = await blobs.of('r').put(new TextEncoder().encode('{'));
  for (const reading of [() => readJson(blobs, ref), () => getJson(blobs, ref, Places)])
    await expect(reading()).rejects.toMatchObject({ name: 'BlobUnexpected', message: expect.stringContaining(`blob ${ref}`) });
});
