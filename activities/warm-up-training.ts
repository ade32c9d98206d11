import type { BlobRef } from '../core/ids.ts';
import { usdOf } from '../core/measures/spend.ts';
import type { Usage } from '../core/measures/usage.ts';
import type { WarmupRow } from '../core/run/warm-up.ts';
import type { TrainingRef } from '../core/training/plan.ts';
import { warmupUpdates } from './batch-updates.ts';
import { whileBeating } from './beating.ts';
import type { RunRecords } from './run-records.ts';
import type { AdvanceDeps } from './training-advance.ts';
import { trainPlanned } from './training-batch.ts';

export type WarmupOrder = {
  readonly run: BlobRef;
  /** The warm-up's set, and the places in it of the sequences to train on. */
  readonly set: BlobRef;
  readonly places: readonly number[];
  /** From 1. */
  readonly update: number;
  readonly training: TrainingRef;
};
export type WarmupTrained = Usage & { readonly training: TrainingRef; readonly row: WarmupRow; readonly notices: readonly string[] };

export type WarmupTrainingDeps = AdvanceDeps & { readonly records: RunRecords };
export type WarmupTrainingActivities = ReturnType<typeof createWarmupTrainingActivities>;

export function createWarmupTrainingActivities({ records, ...deps }: WarmupTrainingDeps) {
  return {
    /** One optimizer update on the teacher's tokens. It is made once, as a step's are. */
    async trainWarmup({ run, set, places, update, training: before }: WarmupOrder): Promise<WarmupTrained> {
      const startedAtMs = Date.now();
      return whileBeating(async () => {
        const record = await records.load(run);
        const source = { kind: 'warm-up', update, set, places } as const;
        const { datums, lossTokens, contextTokens, ...updates } = await warmupUpdates(source, record, deps);
        const { seen, gradNorms, ...trained } = await trainPlanned(deps, record, before, source, updates);
        const lossNats = seen[0]?.loss ?? null;
        const tokens = lossTokens + contextTokens;
        const row: WarmupRow = {
          update,
          datums,
          loss_tokens: lossTokens,
          context_tokens: contextTokens,
          learning_rate: updates.learningRate,
          loss_nats: lossNats,
          loss_nats_per_token: lossNats === null ? null : lossNats / lossTokens,
          grad_norm: gradNorms[0] ?? null,
          student_train_tokens: tokens,
          usd: usdOf(record.config.pricing, 'student_train', tokens),
          wall_ms: Date.now() - startedAtMs,
        };
        return { ...trained, row };
      }, deps.models.longestWait);
    },
  };
}
