import { cancellationSignal } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef, SamplerPath, StatePath } from '../core/ids.ts';
import { NOTHING_SENT } from '../core/measures/usage.ts';
import { samplerSeed } from '../core/random/seeded.ts';
import type { KeptTrials, PlayedSlot } from '../core/run/kept-trials.ts';
import type { TrainingRef, TrainResult } from '../core/run/results.ts';
import { decodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import { decodeTopkRows } from '../core/tokens/topk-codec.ts';
import { prepareBatch, type ScoredBatch } from '../core/training/batch.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { whileBeating } from './beating.ts';
import { readTrials } from './kept-trials.ts';
import type { ModelAccess } from './model-access.ts';
import { clientOf, onService, optimizerUpdate } from './optimizer.ts';
import type { RunRecords } from './run-records.ts';

export type BatchOrder = {
  readonly run: BlobRef;
  readonly step: number;
  /** The weights the batch was sampled from. */
  readonly sampler: string;
  readonly training: TrainingRef;
  /** All of the batch; those that were scored are trained on. */
  readonly trials: KeptTrials;
};
export type SaveOrder = { readonly run: BlobRef; readonly training: TrainingRef; readonly name: string };

export type TrainingDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly models: ModelAccess;
  /** For negative controls only, see `BatchOptions`. */
  readonly alterAdvantages?: (advantages: readonly Float64Array[]) => readonly Float64Array[];
};
export type TrainingActivities = ReturnType<typeof createTrainingActivities>;

export function createTrainingActivities({ records, blobs, models, alterAdvantages }: TrainingDeps) {
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
      return whileBeating(
        () => models.withClient(async (client) => ({ sessionId: client.sessionId, ...(await client.createModel(options)) })),
        models.longestWait,
      );
    },

    /**
     * The optimizer updates of a scored batch, `num_substeps` of them where it has so many sequences. Their calls carry the sequence
     * numbers handed in, so that a second attempt gets the answers of the first instead of a second update.
     */
    async trainBatch(order: BatchOrder): Promise<TrainResult> {
      const startedAtMs = Date.now();
      const trials = await readTrials(order.trials, blobs);
      refuseMasked(order.step, trials);
      const { config, runId } = await records.load(order.run);
      const batch = await loadBatch(scoredEpisodes(trials), blobs);
      const options = { train: config.train, runName: runId, step: order.step, ...(alterAdvantages ? { alterAdvantages } : {}) };
      const { loss, updates, figures, trainTokens } = prepareBatch(batch, options);
      const losses: (number | null)[] = [];
      const gradNorms: (number | null)[] = [];
      const done = (nextSeqId: number): TrainResult => ({
        nextSeqId,
        trained: { ...figures, losses, gradNorms },
        meters: { student_train: trainTokens },
        sent: { ...NOTHING_SENT, trainedTokens: trainTokens },
        lost: [],
        wallMs: Date.now() - startedAtMs,
      });
      if (updates.length === 0) return done(order.training.nextSeqId);
      return onService(models, async () => {
        const training = await clientOf(models, order.training);
        for (const sequences of updates) {
          const made = await optimizerUpdate(training, { sequences, loss, learningRate: config.train.learning_rate });
          losses.push(made.loss);
          gradNorms.push(made.gradNorm);
        }
        return done(training.nextSeqId);
      });
    },

    /** Publishes the weights as they are now, under `name`, for sampling. A service that answers a path without keeping it is found out here. */
    async saveSampler(order: SaveOrder): Promise<{ path: SamplerPath; nextSeqId: number }> {
      return onService(models, async () => {
        const training = await clientOf(models, order.training);
        const path = await training.saveForSampler(order.name, { signal: cancellationSignal() });
        await models.withClient((client) => client.checkpoints.assertListed(path));
        return { path, nextSeqId: training.nextSeqId };
      });
    },

    /** Saves weights and optimizer state, so that training can go on from here. */
    async saveState(order: SaveOrder): Promise<{ path: StatePath; nextSeqId: number }> {
      return onService(models, async () => {
        const training = await clientOf(models, order.training);
        const path = await training.saveState(order.name, { signal: cancellationSignal() });
        return { path, nextSeqId: training.nextSeqId };
      });
    },
  };
}

/** A scored episode, with its candidates where the loss needs them. */
type StoredEpisode = { readonly scored: BlobRef; readonly candidates: BlobRef | null };

const scoredEpisodes = (trials: readonly PlayedSlot[]): StoredEpisode[] =>
  trials.flatMap(({ score }) => (score?.scored ? [{ scored: score.scored, candidates: score.candidates }] : []));

async function loadBatch(episodes: readonly StoredEpisode[], blobs: BlobStore): Promise<ScoredBatch> {
  const parts = await Promise.all(
    episodes.map(async (episode) => {
      const { datums, rows } = decodeScoredEpisode(await blobs.get(episode.scored));
      return { datums, rows, candidates: episode.candidates && decodeTopkRows(await blobs.get(episode.candidates), datums) };
    }),
  );
  return {
    datums: parts.flatMap(({ datums }) => datums),
    rows: parts.flatMap(({ rows }) => rows),
    candidates: parts.some(({ candidates }) => candidates === null) ? null : parts.flatMap(({ candidates }) => candidates ?? []),
  };
}

/** Largest share of a batch's sampled tokens whose log-probabilities may be unusable. */
const MOST_MASKED = 0.01;

/** A service that loses log-probabilities must not be trained on. */
function refuseMasked(step: number, trials: readonly PlayedSlot[]): void {
  const total = (key: 'sampledTokens' | 'maskedTokens') => trials.reduce((sum, { trial }) => sum + trial[key], 0);
  const [sampledTokens, maskedTokens] = [total('sampledTokens'), total('maskedTokens')];
  if (maskedTokens <= MOST_MASKED * sampledTokens) return;
  throw ApplicationFailure.nonRetryable(
    `step ${step}: ${maskedTokens} of ${sampledTokens} sampled tokens came without a usable log-probability, more than ${MOST_MASKED * 100} %: the sampling service is at fault, or the student's weights are no longer usable (is train.learning_rate too high?)`,
    'UnusableLogprobs',
  );
}
