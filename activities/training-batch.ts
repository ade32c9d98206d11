import { NO_USAGE, type Usage } from '../core/measures/usage.ts';
import type { BatchSource, PlannedBatch, SeenUpdate, TrainingRef } from '../core/training/plan.ts';
import { type BatchUpdates, probeTokensOf } from './batch-updates.ts';
import { sha256 } from './digest.ts';
import { keepEntry } from './plan-store.ts';
import type { RunRecord } from './run-records.ts';
import { type AdvanceDeps, advance } from './training-advance.ts';
import { batchOperations, seenUpdates } from './training-operations.ts';

export type TrainedPlan = Usage & {
  readonly seen: readonly SeenUpdate[];
  readonly gradNorms: readonly (number | null)[];
  readonly training: TrainingRef;
  readonly notices: readonly string[];
};

/** Makes a batch's updates, and enters the batch in the plan with what was seen. One without updates leaves the plan as it is. */
export async function trainPlanned(
  deps: AdvanceDeps,
  record: RunRecord,
  training: TrainingRef,
  source: BatchSource,
  prepared: BatchUpdates,
): Promise<TrainedPlan> {
  if (prepared.updates.length === 0) return { seen: [], gradNorms: [], training, notices: [], ...NO_USAGE };
  const digest = sha256(JSON.stringify(source));
  const { results, at, usage, notices } = await advance(deps, record, training, batchOperations({ source, digest }, prepared));
  const seen = seenUpdates(prepared.updates, results);
  const gradNorms = seen.map((_, i) => results[2 * i + 1]?.gradNorm ?? null);
  const updates = training.updates + seen.length;
  const entry: PlannedBatch = { is: 'batch', source, digest, seen, probeTokens: probeTokensOf(prepared), updates, previous: training.head };
  const head = await keepEntry(deps.blobs, record.runId, entry);
  return { seen, gradNorms, training: { ...training, head, updates, at }, notices, ...usage };
}
