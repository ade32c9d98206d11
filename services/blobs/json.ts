import type { z } from 'zod';
import type { BlobRef } from '../../core/ids.ts';
import type { BlobStore, RunBlobs } from './blob-store.ts';

/** A blob that is whole, but not what its reader expects. */
export class BlobUnexpected extends Error {
  override readonly name = 'BlobUnexpected';
  constructor(ref: BlobRef, problem: string) {
    super(`blob ${ref} is not what was to be read: ${problem}`);
  }
}

/** Stores a value as JSON. */
export function putJson(blobs: RunBlobs, value: unknown): Promise<BlobRef> {
  return blobs.put(new TextEncoder().encode(JSON.stringify(value)));
}

/** The value that a blob holds as JSON. @throws BlobUnexpected for a blob that holds none, and what the store throws. */
export async function readJson(blobs: BlobStore, ref: BlobRef): Promise<unknown> {
  const text = new TextDecoder().decode(await blobs.get(ref));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new BlobUnexpected(ref, `no JSON: ${(error as Error).message}`);
  }
}

/** The same, checked. @throws BlobUnexpected for a value that the schema refuses too. */
export async function getJson<T>(blobs: BlobStore, ref: BlobRef, schema: z.ZodType<T>): Promise<T> {
  const { data, error } = schema.safeParse(await readJson(blobs, ref));
  if (error) throw new BlobUnexpected(ref, error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`).join('; '));
  return data;
}
