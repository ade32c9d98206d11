import type { BlobRef } from '../core/ids.ts';
import type { KeptTrials, PlayedSlot } from '../core/run/kept-trials.ts';
import { inSlotOrder } from '../core/run/slots.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { putJson, readJson } from '../services/blobs/json.ts';
import type { RunRecords } from './run-records.ts';

export type KeptTrialsDeps = { readonly records: RunRecords; readonly blobs: BlobStore };
export type KeptTrialsActivities = ReturnType<typeof createKeptTrialsActivities>;

export function createKeptTrialsActivities({ records, blobs }: KeptTrialsDeps) {
  return {
    /** Puts some trials of a batch into the blob store, so that only their reference travels on. */
    async keepTrials({ run, trials }: { run: BlobRef; trials: readonly PlayedSlot[] }): Promise<BlobRef> {
      const { runId } = await records.load(run);
      return putJson(blobs.of(runId), trials);
    },
  };
}

/** The trials of a batch, in the order of their slots. Throws when the lists hold other than what was counted. */
export async function readTrials({ lists, count }: KeptTrials, blobs: BlobStore): Promise<PlayedSlot[]> {
  // No schema: `keepTrials` above wrote them, and the store vouches for their bytes.
  const read = await Promise.all(lists.map(async (list) => (await readJson(blobs, list)) as readonly PlayedSlot[]));
  const trials = inSlotOrder(read.flat());
  const slots = new Set(trials.map(({ slot }) => slot)).size;
  if (trials.length !== count || slots !== count)
    throw new Error(`the batch's lists hold ${trials.length} trials of ${slots} slots; ${count} were counted`);
  return trials;
}
