import { countTokens } from '../core/tokens/datums.ts';
import { decodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import { decodeTopkRows } from '../core/tokens/topk-codec.ts';
import { type CrossEntropyWire, type PolicyWire, toWire } from '../core/tokens/wire.ts';
import { type BatchFigures, type BatchOptions, prepareBatch, type ScoredBatch } from '../core/training/batch.ts';
import type { BatchSource } from '../core/training/plan.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { getJson } from '../services/blobs/json.ts';
import type { RunRecord } from './run-records.ts';
import { datumsAt, SetIndex } from './warm-up-set.ts';

export type Sequence = PolicyWire | CrossEntropyWire;

/** The optimizer updates that a batch comes to, in order. They follow from the batch's source and the run's pinned config alone. */
export type BatchUpdates = {
  readonly loss: 'importance_sampling' | 'ppo' | 'cross_entropy';
  readonly learningRate: number;
  readonly updates: readonly (readonly Sequence[])[];
};

export type BatchDeps = { readonly blobs: BlobStore } & Pick<BatchOptions, 'alterAdvantages'>;

type StepSource = Extract<BatchSource, { kind: 'step' }>;
type WarmupSource = Extract<BatchSource, { kind: 'warm-up' }>;

export async function updatesOf(source: BatchSource, record: RunRecord, deps: BatchDeps): Promise<BatchUpdates> {
  return source.kind === 'step' ? stepUpdates(source, record, deps) : warmupUpdates(source, record, deps);
}

/** `num_substeps` updates on a scored batch, where it has so many sequences; none when it has nothing to learn from. */
export async function stepUpdates(
  { step, episodes }: StepSource,
  { config: { train }, runId }: RunRecord,
  { blobs, alterAdvantages }: BatchDeps,
): Promise<BatchUpdates & { readonly figures: BatchFigures }> {
  const options = { train, runName: runId, step, ...(alterAdvantages ? { alterAdvantages } : {}) };
  const { loss, updates, figures } = prepareBatch(await loadBatch(episodes, blobs), options);
  return { loss, updates, figures, learningRate: train.learning_rate };
}

/** One update on the teacher's tokens: cross-entropy, weight 1 on each token that the teacher sampled. */
export async function warmupUpdates(
  { set, places }: WarmupSource,
  { config }: RunRecord,
  { blobs }: BatchDeps,
): Promise<BatchUpdates & { readonly datums: number; readonly lossTokens: number; readonly contextTokens: number }> {
  const datums = await datumsAt(await getJson(blobs, set, SetIndex), places, config, blobs);
  const learningRate = config.warmup.learning_rate ?? config.train.learning_rate;
  const updates = [toWire('cross_entropy', datums)];
  return { loss: 'cross_entropy', learningRate, updates, datums: datums.length, ...countTokens(datums) };
}

/** Tokens that training is billed for; a sequence is sent without its last one, which it is trained to predict. */
export const tokensOf = (sequences: readonly Sequence[]) => sequences.reduce((sum, { modelInput }) => sum + modelInput.length + 1, 0);

/** Sum of the sizes of what multiplies the tokens' log-probabilities in the loss. */
export function lossScale(sequences: readonly Sequence[]): number {
  let sum = 0;
  for (const sequence of sequences) {
    const factors = 'weights' in sequence ? sequence.weights : sequence.advantages;
    for (let i = 0; i < factors.length; i++) sum += Math.abs(factors[i] as number);
  }
  return sum;
}

/** Longer ones are cut to it: a probe is paid for at every save. */
const MOST_PROBE_TOKENS = 256;

/** A small sequence of a batch: its shortest one, cut where that is long. */
export function probeTokensOf({ updates }: BatchUpdates): number[] {
  const shortest = updates
    .flat()
    .reduce<Sequence | null>((best, one) => (best && best.modelInput.length <= one.modelInput.length ? best : one), null);
  if (shortest === null) return [];
  const { modelInput, targetTokens } = shortest;
  return [...modelInput, ...targetTokens.slice(-1)].slice(0, MOST_PROBE_TOKENS);
}

async function loadBatch(episodes: StepSource['episodes'], blobs: BlobStore): Promise<ScoredBatch> {
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
