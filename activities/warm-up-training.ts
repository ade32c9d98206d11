import type { BlobRef } from '../core/ids.ts';
import { usdOf } from '../core/measures/spend.ts';
import { NOTHING_SENT, type Usage } from '../core/measures/usage.ts';
import type { TrainingRef } from '../core/run/results.ts';
import type { WarmupRow } from '../core/run/warm-up.ts';
import { countTokens } from '../core/tokens/datums.ts';
import { toWire } from '../core/tokens/wire.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { getJson } from '../services/blobs/json.ts';
import type { ModelAccess } from './model-access.ts';
import { clientOf, onService, optimizerUpdate } from './optimizer.ts';
import type { RunRecords } from './run-records.ts';
import { datumsAt, SetIndex } from './warm-up-set.ts';

export type WarmupOrder = {
  readonly run: BlobRef;
  /** The warm-up's set, and the places in it of the sequences to train on. */
  readonly set: BlobRef;
  readonly places: readonly number[];
  /** From 1. */
  readonly update: number;
  readonly training: TrainingRef;
};
export type WarmupTrained = Usage & { readonly nextSeqId: number; readonly row: WarmupRow };

export type WarmupTrainingDeps = { readonly records: RunRecords; readonly blobs: BlobStore; readonly models: ModelAccess };
export type WarmupTrainingActivities = ReturnType<typeof createWarmupTrainingActivities>;

export function createWarmupTrainingActivities({ records, blobs, models }: WarmupTrainingDeps) {
  return {
    /**
     * One optimizer update on the teacher's tokens: cross-entropy, weight 1 on each token that the teacher sampled. Its calls carry the
     * sequence numbers handed in, so that a second attempt gets the answers of the first instead of a second update.
     */
    async trainWarmup({ run, set, places, update, training }: WarmupOrder): Promise<WarmupTrained> {
      const startedAtMs = Date.now();
      const { config } = await records.load(run);
      const index = await getJson(blobs, set, SetIndex);
      const datums = await datumsAt(index, places, config, blobs);
      const { lossTokens, contextTokens } = countTokens(datums);
      const learningRate = config.warmup.learning_rate ?? config.train.learning_rate;
      return onService(models, async () => {
        const client = await clientOf(models, training);
        const sequences = toWire('cross_entropy', datums);
        const { loss: lossNats, gradNorm } = await optimizerUpdate(client, { sequences, loss: 'cross_entropy', learningRate });
        const meters = { student_train: lossTokens + contextTokens };
        return {
          nextSeqId: client.nextSeqId,
          row: {
            update,
            datums: datums.length,
            loss_tokens: lossTokens,
            context_tokens: contextTokens,
            learning_rate: learningRate,
            loss_nats: lossNats,
            loss_nats_per_token: lossNats === null ? null : lossNats / lossTokens,
            grad_norm: gradNorm,
            student_train_tokens: meters.student_train,
            usd: usdOf(config.pricing, 'student_train', meters.student_train),
            wall_ms: Date.now() - startedAtMs,
          },
          meters,
          sent: { ...NOTHING_SENT, trainedTokens: meters.student_train },
          lost: [],
        };
      });
    },
  };
}
