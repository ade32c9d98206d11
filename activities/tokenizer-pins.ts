import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { z } from 'zod';
import { getObjectJson } from '../services/blobs/object-json.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { placeOf } from '../services/blobs/run-keys.ts';
import type { FileDigests, FoundFiles } from '../services/hub/index.ts';

/** What a run's conversations with a model are rendered with: digests of the files, and the state of the repository that they are of. */
const Pin = z.strictObject({ model: z.string(), commit: z.string().nullable(), files: z.record(z.string(), z.string()) });
export type Pin = z.output<typeof Pin>;

/** This worker's tokenizer files are not those that the run began with: it must not render for it. */
export class TokenizerChanged extends Error {
  override readonly name = 'TokenizerChanged';
}

const pinsOf = (runId: string) => `${placeOf(runId)}tokenizers/`;
const keyOf = (runId: string, model: string) => `${pinsOf(runId)}${createHash('sha256').update(model).digest('hex').slice(0, 16)}`;

/** The moment that chat templates take for now: that of the run's first check, for all of its trials on all workers. Milliseconds since 1970. */
export async function dateOf(objects: ObjectStore, runId: string, nowMs: number): Promise<number> {
  const key = `${pinsOf(runId)}date`;
  if (await objects.create(key, new TextEncoder().encode(JSON.stringify(nowMs)))) return nowMs;
  return (await getObjectJson(objects, key, z.int().min(0))) ?? nowMs;
}

/** What the run's first worker found; null where none has looked yet. */
export function pinOf(objects: ObjectStore, runId: string, model: string): Promise<Pin | null> {
  return getObjectJson(objects, keyOf(runId, model), Pin);
}

/**
 * Keeps what the run's first worker found, and compares what any other one has: all trials of a run are rendered alike, or not at all.
 * @throws TokenizerChanged
 */
export async function pinFiles(objects: ObjectStore, runId: string, model: string, found: FoundFiles, files: FileDigests): Promise<void> {
  const own: Pin = { model, commit: found.commit, files };
  if (await objects.create(keyOf(runId, model), new TextEncoder().encode(JSON.stringify(own)))) return;
  const pin = (await pinOf(objects, runId, model)) ?? own;
  const names = [...new Set([...Object.keys(pin.files), ...Object.keys(files)])].sort();
  const changed = names.filter((name) => pin.files[name] !== files[name as keyof FileDigests]);
  if (changed.length === 0) return;
  const short = (digest: string | undefined) => (digest === undefined ? 'none' : `sha256 ${digest.slice(0, 12)}`);
  const told = changed
    .map((name) => `${name} (${short(files[name as keyof FileDigests])} here, ${short(pin.files[name])} there)`)
    .join(', ');
  const from = pin.commit === null ? 'a folder' : `commit ${pin.commit} of the repository`;
  throw new TokenizerChanged(
    `the tokenizer files of ${model} in ${found.folder} on worker ${hostname()} are not those that the run began with: ${told}. ` +
      `They were from ${from}: put the same ones there and start this worker again, or let others do the run's work`,
  );
}
