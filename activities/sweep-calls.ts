import { batchOf, stepOfBatch } from '../core/run/slots.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { callsPrefix } from './paid-calls.ts';

const AT_ONCE = 16;

/**
 * Removes the books of the steps before this one. Their results are in history, and so are this step's; but its own stay until the next,
 * so that a run that is set back by a step finds them.
 */
export function sweepStepsBefore(objects: ObjectStore, runId: string, step: number): Promise<void> {
  return sweepCalls(objects, runId, (of) => {
    const batch = batchOf(of);
    return batch === null || (stepOfBatch(batch) ?? step) < step;
  });
}

/** Removes the books of one batch of trials, whose results are in history. */
export async function sweepBatch(objects: ObjectStore, runId: string, trialIds: readonly string[]): Promise<void> {
  const batches = new Set(trialIds.map(batchOf));
  await sweepCalls(objects, runId, (of) => batches.has(batchOf(of)));
}

/** Removes all books of a run that has ended. */
export const sweepAll = (objects: ObjectStore, runId: string): Promise<void> => sweepCalls(objects, runId, () => true);

/** There are few books at any time, since each batch removes its own or those before it. */
async function sweepCalls(objects: ObjectStore, runId: string, isOver: (of: string) => boolean): Promise<void> {
  const prefix = callsPrefix(runId);
  let batch: Promise<void>[] = [];
  for await (const { key } of objects.list(prefix)) {
    const [of = ''] = key.slice(prefix.length).split('/');
    if (isOver(of)) batch.push(objects.delete(key));
    if (batch.length < AT_ONCE) continue;
    await Promise.all(batch);
    batch = [];
  }
  await Promise.all(batch);
}
