import { z } from 'zod';
import type { BlobRef } from '../../core/ids.ts';
import type { BlobStore } from './blob-store.ts';
import { getObjectJson } from './object-json.ts';
import { listed, type ObjectStore } from './object-store.ts';
import { trialFilesOf } from './run-keys.ts';

const KeptFiles = z.strictObject({
  trialId: z.string(),
  taskId: z.string(),
  who: z.enum(['student', 'teacher']),
  /** The files, packed. */
  files: z.string().transform((ref) => ref as BlobRef),
  /** Packed. */
  bytes: z.int(),
  reward: z.number().nullable(),
  executed: z.boolean(),
  exceptionType: z.string().nullable(),
  exceptionMessage: z.string().nullable(),
  stopReason: z.string().nullable(),
});

/** How a trial ended, and where what it left in its folder is kept. */
export type KeptFiles = Readonly<z.infer<typeof KeptFiles>>;

const READERS = 16;

/** Keeps packed files with the run. Of several attempts at a trial, the last one's are found. */
export async function keepTrialFiles(
  stores: { readonly blobs: BlobStore; readonly objects: ObjectStore },
  runId: string,
  packed: Uint8Array,
  about: Omit<KeptFiles, 'files' | 'bytes'>,
): Promise<BlobRef> {
  const files = await stores.blobs.of(runId).put(packed);
  const entry: KeptFiles = { ...about, files, bytes: packed.length };
  await stores.objects.put(`${trialFilesOf(runId)}${about.trialId}`, Buffer.from(JSON.stringify(entry)));
  return files;
}

/** Null where nothing is kept of such a trial. */
export const keptFilesOf = (objects: ObjectStore, runId: string, trialId: string): Promise<KeptFiles | null> =>
  getObjectJson(objects, `${trialFilesOf(runId)}${trialId}`, KeptFiles);

/** Every trial of a run whose files are kept, by id. */
export async function allKeptFiles(objects: ObjectStore, runId: string): Promise<KeptFiles[]> {
  const found: KeptFiles[] = [];
  const entries = await listed(objects, trialFilesOf(runId));
  for (let at = 0; at < entries.length; at += READERS) {
    const read = entries.slice(at, at + READERS).map(({ key }) => getObjectJson(objects, key, KeptFiles));
    found.push(...(await Promise.all(read)).filter((entry) => entry !== null));
  }
  return found;
}
