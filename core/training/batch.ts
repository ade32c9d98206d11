import type { RunConfig } from '../config/schema.ts';
import { type AdvantageStats, computeAdvantages } from '../tokens/advantages.ts';
import type { Datum } from '../tokens/span.ts';
import { buildTopkReplicas, type TopkRow, topkToWire } from '../tokens/topk.ts';
import { type CrossEntropyWire, type PolicyWire, toWire } from '../tokens/wire.ts';
import { planMinibatches, wireLoss } from './minibatches.ts';

/** A batch of training sequences, each with the teacher's row (see `keepTeacherRow`) and, under `topk_ce`, its candidates. */
export type ScoredBatch = {
  readonly datums: readonly Datum[];
  readonly rows: readonly Float64Array[];
  /** Null unless the loss needs them. */
  readonly candidates: readonly TopkRow[] | null;
};

export type BatchOptions = {
  readonly train: Pick<RunConfig['train'], 'loss' | 'topk' | 'advantage_clip' | 'center_advantages' | 'num_substeps'>;
  /** Seeds the split into substeps, with the step. */
  readonly runName: string;
  readonly step: number;
  /** For negative controls only: changes the advantages before they are encoded. */
  readonly alterAdvantages?: (advantages: readonly Float64Array[]) => readonly Float64Array[];
};

/** What a batch comes to before the service has seen it. */
export type BatchFigures = Pick<
  AdvantageStats,
  'datums' | 'mismatchDrops' | 'lossTokens' | 'contextTokens' | 'clippedTokens' | 'advantageMean' | 'advantageStd'
> & {
  /** Mean of student − teacher over the scored loss positions, those of dropped datums included; null when nothing is scored. */
  readonly reverseKlNatsPerToken: number | null;
  readonly klTokens: number;
};

export type PreparedBatch = {
  /** The loss that the service is asked for. */
  readonly loss: ReturnType<typeof wireLoss>;
  /** Sequences of each optimizer update, in order; none when the batch has nothing to learn from. */
  readonly updates: readonly (readonly (PolicyWire | CrossEntropyWire)[])[];
  readonly figures: BatchFigures;
  /** Tokens that training is billed for: those of every sequence sent, replicas included. */
  readonly trainTokens: number;
};

/**
 * Turns a scored batch into optimizer updates. A batch without a datum, or whose advantages are all exactly 0, makes none.
 * @throws TokenError when rows or candidates do not fit their datums
 */
export function prepareBatch(batch: ScoredBatch, options: BatchOptions): PreparedBatch {
  const { train } = options;
  const computed = computeAdvantages(batch.datums, batch.rows, {
    advantageClip: train.advantage_clip,
    centerAdvantages: train.center_advantages,
  });
  const { reverseKlNatsPerToken, klTokens } = computed;
  const kl = { reverseKlNatsPerToken, klTokens };
  const loss = wireLoss(train.loss);
  if (train.loss === 'topk_ce') {
    const { replicas, stats } = buildTopkReplicas(batch.datums, batch.candidates ?? [], train.topk);
    const { sourceDatums: _, ...counts } = stats;
    const none = { clippedTokens: 0, advantageMean: null, advantageStd: null };
    const sequences = topkToWire(replicas);
    const updates = replicas.length === 0 ? [] : split(sequences, sourcesOf(replicas), options);
    return { loss, updates, figures: { ...counts, ...none, ...kl }, trainTokens: tokensOf(replicas.map(({ datum }) => datum)) };
  }
  const { kept } = computed;
  const { nonZeroTokens, ...counts } = computed.stats;
  const isEmpty = nonZeroTokens === 0;
  const advantages = options.alterAdvantages?.(computed.advantages) ?? computed.advantages;
  const sequences = toWire(train.loss, kept, advantages);
  const updates = isEmpty ? [] : split(sequences, [...kept.keys()], options);
  return { loss, updates, figures: { ...counts, ...kl }, trainTokens: isEmpty ? 0 : tokensOf(kept) };
}

const sourcesOf = (replicas: readonly { readonly source: number }[]) => replicas.map(({ source }) => source);

const tokensOf = (datums: readonly Datum[]) => datums.reduce((sum, { tokens }) => sum + tokens.length, 0);

function split<T>(sequences: readonly T[], sources: readonly number[], { train, runName, step }: BatchOptions): T[][] {
  const chunks = planMinibatches({ sources, numSubsteps: train.num_substeps, runName, step });
  return chunks.map((chunk) => chunk.map((index) => sequences[index] as T));
}
