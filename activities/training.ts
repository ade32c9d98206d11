import { activityInfo, cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef, SamplerPath, StatePath } from '../core/ids.ts';
import { samplerSeed } from '../core/random/seeded.ts';
import type { TrainingRef, TrainResult } from '../core/run/results.ts';
import { computeAdvantages } from '../core/tokens/advantages.ts';
import { decodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import { toWire } from '../core/tokens/wire.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { ServiceFailed, type TrainingClient, TrainingStateUnknown } from '../services/tinker/index.ts';
import { whileBeating } from './beating.ts';
import type { ModelAccess } from './model-access.ts';
import type { RunRecords } from './run-records.ts';

export type BatchOrder = {
  readonly run: BlobRef;
  readonly step: number;
  /** The weights the batch was sampled from. */
  readonly sampler: string;
  readonly training: TrainingRef;
  /** Of the whole batch: a service that loses log-probabilities must not be trained on. */
  readonly sampledTokens: number;
  readonly maskedTokens: number;
  /** Scored episodes, in the order of their slots. */
  readonly episodes: readonly BlobRef[];
};
export type SaveOrder = { readonly run: BlobRef; readonly training: TrainingRef; readonly name: string };

export type TrainingDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly models: ModelAccess;
  /** For negative controls only: changes the batch's advantages before they are trained on. */
  readonly alterAdvantages?: (advantages: readonly Float64Array[]) => readonly Float64Array[];
};
export type TrainingActivities = ReturnType<typeof createTrainingActivities>;

/** Adam's fixed settings: those of the protocol's own defaults. */
export const ADAM = { beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 } as const;

export function createTrainingActivities({ records, blobs, models, alterAdvantages = (advantages) => advantages }: TrainingDeps) {
  const clientOf = ({ modelId, nextSeqId, sessionId }: TrainingRef): Promise<TrainingClient> =>
    models.withClient(async (client) => client.training(modelId, { nextSeqId, sessionId }));

  return {
    /** Makes the student: a fresh LoRA on its base model. */
    async openTraining({ run }: { run: BlobRef }): Promise<TrainingRef> {
      const { config, runId } = await records.load(run);
      const options = {
        baseModel: config.student.base_model,
        rank: config.student.lora_rank,
        seed: samplerSeed(`${runId} lora`),
        userMetadata: { stillroom_run: runId },
      };
      return whileBeating(() =>
        models.withClient(async (client) => ({ sessionId: client.sessionId, ...(await client.createModel(options)) })),
      );
    },

    /**
     * One optimizer update from a scored batch. Its calls carry the sequence numbers handed in, so that a second attempt
     * gets the answers of the first instead of a second update. A batch whose advantages are all zero changes nothing.
     */
    async trainBatch(order: BatchOrder): Promise<TrainResult> {
      const startedAtMs = Date.now();
      refuseMasked(order);
      const { config } = await records.load(order.run);
      const episodes = await Promise.all(order.episodes.map(async (ref) => decodeScoredEpisode(await blobs.get(ref))));
      const computed = computeAdvantages(
        episodes.flatMap(({ datums }) => datums),
        episodes.flatMap(({ rows }) => rows),
        { advantageClip: config.train.advantage_clip, centerAdvantages: config.train.center_advantages },
      );
      const { kept, stats, reverseKlNatsPerToken } = computed;
      const advantages = alterAdvantages(computed.advantages);
      const counts = {
        datums: kept.length,
        lossTokens: stats.lossTokens,
        contextTokens: stats.contextTokens,
        clippedTokens: stats.clippedTokens,
        mismatchDrops: stats.mismatchDrops,
        reverseKlNatsPerToken,
      };
      const figures = { advantageMean: stats.advantageMean, advantageStd: stats.advantageStd };
      if (stats.nonZeroTokens === 0) {
        const { nextSeqId } = order.training;
        return { ...counts, ...figures, nextSeqId, updates: 0, loss: null, gradNorm: null, meters: {}, wallMs: Date.now() - startedAtMs };
      }
      return onService(async () => {
        const training = await clientOf(order.training);
        const signal = cancellationSignal();
        const wire = toWire('importance_sampling', kept, advantages);
        const { metrics } = await training.forwardBackward(wire, 'importance_sampling', { signal });
        const optimizer = await training.optimStep({ learningRate: config.train.learning_rate, ...ADAM }, { signal });
        return {
          ...counts,
          ...figures,
          nextSeqId: training.nextSeqId,
          updates: 1,
          loss: metrics['loss:sum'] ?? null,
          gradNorm: gradNormIn(optimizer.metrics),
          meters: { student_train: stats.lossTokens + stats.contextTokens },
          wallMs: Date.now() - startedAtMs,
        };
      });
    },

    /** Publishes the weights as they are now, under `name`, for sampling. */
    async saveSampler(order: SaveOrder): Promise<{ path: SamplerPath; nextSeqId: number }> {
      return onService(async () => {
        const training = await clientOf(order.training);
        const path = await training.saveForSampler(order.name, { signal: cancellationSignal() });
        return { path, nextSeqId: training.nextSeqId };
      });
    },

    /** Saves weights and optimizer state, so that training can go on from here. */
    async saveState(order: SaveOrder): Promise<{ path: StatePath; nextSeqId: number }> {
      return onService(async () => {
        const training = await clientOf(order.training);
        const path = await training.saveState(order.name, { signal: cancellationSignal() });
        return { path, nextSeqId: training.nextSeqId };
      });
    },
  };
}

/** A failed call is remembered by the service under its number: more attempts than this only hear the same failure again. */
const ATTEMPTS_BEFORE_LOST = 5;

/** Fails the run by name where the training on the service cannot go on; an outage (`RetryLater`) is waited out. */
function asTrainingFailure(error: unknown): unknown {
  const isLost = error instanceof TrainingStateUnknown || error instanceof ServiceFailed;
  if (!isLost || activityInfo().attempt < ATTEMPTS_BEFORE_LOST) return error;
  return ApplicationFailure.nonRetryable(
    `the service cannot go on with this training: ${error.message}. The last saved state is kept there.`,
    'TrainingLost',
  );
}

/** Largest share of a batch's sampled tokens whose log-probabilities may be unusable. */
const MOST_MASKED = 0.01;

/** Runs one or more training calls, with heartbeats. */
export async function onService<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await whileBeating(work);
  } catch (error) {
    throw asTrainingFailure(error);
  }
}

function refuseMasked({ step, sampledTokens, maskedTokens }: BatchOrder): void {
  if (maskedTokens <= MOST_MASKED * sampledTokens) return;
  throw ApplicationFailure.nonRetryable(
    `step ${step}: ${maskedTokens} of ${sampledTokens} sampled tokens came without a usable log-probability, more than ${MOST_MASKED * 100} %: the sampling service is at fault`,
    'UnusableLogprobs',
  );
}

/** Services name it differently; absent is unknown, not zero. */
export function gradNormIn(metrics: Readonly<Record<string, number>>): number | null {
  const key = Object.keys(metrics).find((name) => /grad_norm/.test(name));
  return key === undefined ? null : (metrics[key] ?? null);
}
