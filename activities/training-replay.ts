import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef } from '../core/ids.ts';
import type { Origin } from '../core/training/journal.ts';
import { batchesIn, batchName, PlanEntry, type PlannedBatch, type Probe } from '../core/training/plan.ts';
import type { Comparison } from '../core/training/self-test.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { getJson } from '../services/blobs/json.ts';
import { type BatchDeps, tokensOf, updatesOf } from './batch-updates.ts';
import { entriesAfter } from './plan-store.ts';
import type { RunRecord } from './run-records.ts';
import { batchCalls, batchOperations, type Operation, probeOperation } from './training-operations.ts';

/** A call that is to be made of a model, by its name; what it sends is put together when it is needed. */
export type PlannedCall = {
  readonly name: string;
  operation(): Promise<Operation>;
  /** The loss it showed when it was made before; null where that is not compared. */
  readonly seen: Omit<Comparison, 'again'> | null;
  /** The batch it belongs to, by its digest; null for a call that trains nothing again. */
  readonly batch: string | null;
};

export const plannedCalls = (operations: readonly Operation[]): PlannedCall[] =>
  operations.map((operation) => ({ name: operation.name, operation: async () => operation, seen: null, batch: null }));

/** The calls that bring a new model from its origin to `head`, a probe first; null when its origin is not of this plan. */
export async function replayOf(origin: Origin, head: BlobRef | null, record: RunRecord, deps: BatchDeps): Promise<PlannedCall[] | null> {
  const chain = await entriesAfter(deps.blobs, head, origin.entry);
  if (chain === null) return null;
  const probe = await probeAt(origin, deps.blobs);
  const batches = batchesIn(chain);
  return [...(probe ? [probeCall(probe, origin)] : []), ...batches.flatMap((batch, i) => callsOf(batch, i === 0, record, deps))];
}

async function probeAt({ entry }: Origin, blobs: BlobStore): Promise<Probe | null> {
  if (entry === null) return null;
  const state = await getJson(blobs, entry, PlanEntry);
  return state.is === 'state' ? state.probe : null;
}

function probeCall({ tokens, lossNats }: Probe, { updates, path }: Origin): PlannedCall {
  const operation = probeOperation(tokens, `after ${updates} updates`);
  const seen = { what: `the probe of ${path}`, ofLoadedWeights: true, seen: lossNats, weight: tokens.length - 1 };
  return { name: operation.name, operation: async () => operation, seen, batch: null };
}

function callsOf(batch: PlannedBatch, isFirst: boolean, record: RunRecord, deps: BatchDeps): PlannedCall[] {
  let made: Promise<readonly Operation[]> | null = null;
  const last = 2 * batch.seen.length - 1;
  return batchCalls({ ...batch, updates: batch.seen.length }).map((name, i) => ({
    name,
    operation: async () => {
      made ??= sameOperations(batch, record, deps);
      const operation = (await made)[i];
      // The sequences of one batch at a time.
      if (i === last) made = null;
      if (operation?.name !== name) throw changed(batch, `call ${i + 1} is "${operation?.name}" instead of "${name}"`);
      return operation;
    },
    seen: i % 2 === 1 ? null : seenLoss(batch, i / 2, isFirst && i === 0),
    batch: batch.digest,
  }));
}

function seenLoss({ source, seen }: PlannedBatch, update: number, ofLoadedWeights: boolean): PlannedCall['seen'] {
  const { loss = null, weight = 0 } = seen[update] ?? {};
  return { what: `${batchName(source)}, update ${update + 1}`, ofLoadedWeights, seen: loss, weight };
}

/** Fails with `RebuildDiffers` when the batch no longer comes to what was trained on. */
async function sameOperations(batch: PlannedBatch, record: RunRecord, deps: BatchDeps): Promise<readonly Operation[]> {
  const prepared = await updatesOf(batch.source, record, deps);
  const [now, then] = [prepared.updates.map(tokensOf), batch.seen.map(({ tokens }) => tokens)];
  if (now.join() !== then.join()) throw changed(batch, `its updates have ${now.join(', ')} tokens, and had ${then.join(', ')}`);
  return batchOperations(batch, prepared);
}

function changed({ source }: PlannedBatch, how: string): ApplicationFailure {
  const message = `${batchName(source)} cannot be trained on again: what it is made of has changed: ${how}. Go back to the version of Stillroom that trained on it, or start a new run from a saved state`;
  return ApplicationFailure.nonRetryable(message, 'RebuildDiffers');
}
