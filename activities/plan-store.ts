import type { BlobRef } from '../core/ids.ts';
import { PlanEntry, type PlannedState } from '../core/training/plan.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { getJson, putJson } from '../services/blobs/json.ts';

/** An entry of a plan with the ref that names it. */
export type Kept<Entry extends PlanEntry = PlanEntry> = { readonly ref: BlobRef; readonly entry: Entry };

export const keepEntry = (blobs: BlobStore, runId: string, entry: PlanEntry): Promise<BlobRef> => putJson(blobs.of(runId), entry);

/** The entries of a plan from the newest back to its base, read as they are asked for. @throws what the store throws for one that is gone */
export async function* entriesBack(blobs: BlobStore, head: BlobRef | null): AsyncGenerator<Kept> {
  for (let ref = head; ref !== null; ) {
    const entry = await getJson(blobs, ref, PlanEntry);
    yield { ref, entry };
    ref = entry.previous;
  }
}

export const isState = (kept: Kept): kept is Kept<PlannedState> => kept.entry.is === 'state';

/** The entries after `end` (null: after the base), from the newest back; null when `end` is not among those that lead to `head`. */
export async function entriesAfter(blobs: BlobStore, head: BlobRef | null, end: BlobRef | null): Promise<PlanEntry[] | null> {
  const found: PlanEntry[] = [];
  for await (const { ref, entry } of entriesBack(blobs, head)) {
    if (ref === end) return found;
    found.push(entry);
  }
  return end === null ? found : null;
}
