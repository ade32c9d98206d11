import { at } from '../lists.ts';
import { areUsable, isUsable } from './logprob.ts';
import type { Datum } from './span.ts';
import { lengthOf, lossStretches } from './stretches.ts';
import { TokenError } from './token-error.ts';

export type AdvantageOptions = {
  /** Bound on |teacher − student| per token, in nats; null does not clip. */
  readonly advantageClip: number | null;
  /** Subtracts the mean over all loss tokens of the batch, after clipping. */
  readonly centerAdvantages: boolean;
};

export type AdvantageStats = {
  readonly datums: number;
  /** Datums dropped because a loss position has no usable score, the row has the wrong length, or a loss token sits at position 0. */
  readonly mismatchDrops: number;
  readonly clippedTokens: number;
  readonly lossTokens: number;
  readonly contextTokens: number;
  /** Loss tokens whose advantage is not 0 in the 32 bits that are sent; a batch with none trains nothing. */
  readonly nonZeroTokens: number;
  /** Mean and population standard deviation over loss tokens, nats; null when there is no loss token. */
  readonly advantageMean: number | null;
  readonly advantageStd: number | null;
};

export type Advantages = {
  readonly kept: Datum[];
  /** One array per kept datum, unshifted, 0 at context positions. */
  readonly advantages: Float64Array[];
  readonly stats: AdvantageStats;
  /** Mean of student − teacher over the scored positions of the batch; null when nothing is scored. */
  readonly reverseKlNatsPerToken: number | null;
  /** The positions that it is a mean over. */
  readonly klTokens: number;
};

/**
 * The advantage of a sampled token is ln p_teacher − ln p_student at that token (the negative of the per-token reverse-KL estimate).
 * `rows[i]` belongs to `datums[i]`, as `keepTeacherRow` returns it: NaN where there is no score, so that context never counts.
 * @throws TokenError `row_count_mismatch` when there is not exactly one row per datum.
 */
export function computeAdvantages(datums: readonly Datum[], rows: readonly Float64Array[], options: AdvantageOptions): Advantages {
  if (rows.length !== datums.length) {
    throw new TokenError('row_count_mismatch', 'batch', `${rows.length} teacher rows for ${datums.length} datums; each datum needs one`);
  }
  const clip = options.advantageClip ?? Number.POSITIVE_INFINITY;
  const kept: Datum[] = [];
  const advantages: Float64Array[] = [];
  const keptStretches: Stretches[] = [];
  let kl = 0;
  let klTokens = 0;
  let clippedTokens = 0;
  datums.forEach((datum, i) => {
    const row = at(rows, i);
    // A row of the wrong length cannot be paired with tokens. Every other one counts in the KL: the scores of a dropped datum are real.
    if (row.length !== datum.tokens.length) return;
    kl = addKl(kl, datum, row);
    klTokens += countScores(row);
    const stretches = lossStretches(datum.mask);
    if (!scoresEveryLossToken(row, stretches)) return;
    const gaps = new Float64Array(row.length);
    clippedTokens += fillGaps(gaps, datum, row, stretches, clip);
    kept.push(datum);
    advantages.push(gaps);
    keptStretches.push(stretches);
  });
  const lossTokens = keptStretches.reduce((tokens, stretches) => tokens + lengthOf(stretches), 0);
  if (options.centerAdvantages) center(advantages, keptStretches, lossTokens);
  const advantageMean = lossTokens === 0 ? null : foldLoss(advantages, keptStretches, addGaps) / lossTokens;
  const stats: AdvantageStats = {
    datums: kept.length,
    mismatchDrops: datums.length - kept.length,
    clippedTokens,
    lossTokens,
    contextTokens: kept.reduce((tokens, { mask }) => tokens + mask.length, 0) - lossTokens,
    nonZeroTokens: foldLoss(advantages, keptStretches, addNonZero),
    advantageMean,
    advantageStd: advantageMean === null ? null : deviation(advantageMean, advantages, keptStretches, lossTokens),
  };
  return { kept, advantages, stats, reverseKlNatsPerToken: klTokens === 0 ? null : kl / klTokens, klTokens };
}

/**
 * The loss positions of a datum, as `lossStretches` gives them: most loops below visit no others. Each loop over tokens is a small function
 * that returns a number: the engine compiles those well, and then makes no object for a token.
 */
type Stretches = readonly number[];

/** Adds student − teacher of every position that has a score. */
function addKl(before: number, { logprobs }: Datum, row: Float64Array): number {
  let sum = before;
  for (let p = 1; p < row.length; p++) {
    const score = row[p] as number;
    // Always adds, if only 0: a sum that is kept on one branch alone is made an object at every turn of the loop.
    sum += isUsable(score) ? (logprobs[p] as number) - score : 0;
  }
  return sum;
}

function countScores(row: Float64Array): number {
  let count = 0;
  for (let p = 1; p < row.length; p++) if (isUsable(row[p] as number)) count++;
  return count;
}

/** Position 0 has nothing before it that could predict it: a loss token there has no score. */
function scoresEveryLossToken(row: Float64Array, stretches: Stretches): boolean {
  if (stretches[0] === 0) return false;
  for (let s = 0; s < stretches.length; s += 2) {
    if (!areUsable(row, stretches[s] as number, stretches[s + 1] as number)) return false;
  }
  return true;
}

/** Writes teacher − student at loss positions, clipped; returns how many were clipped. */
function fillGaps(gaps: Float64Array, { logprobs }: Datum, row: Float64Array, stretches: Stretches, clip: number): number {
  let clipped = 0;
  for (let s = 0; s < stretches.length; s += 2) {
    clipped += fillStretch(gaps, logprobs, row, clip, stretches[s] as number, stretches[s + 1] as number);
  }
  return clipped;
}

function fillStretch(gaps: Float64Array, logprobs: Float64Array, row: Float64Array, clip: number, from: number, to: number): number {
  let clipped = 0;
  for (let p = from; p < to; p++) {
    const gap = (row[p] as number) - (logprobs[p] as number);
    if (gap > clip || gap < -clip) clipped++;
    gaps[p] = Math.max(-clip, Math.min(clip, gap));
  }
  return clipped;
}

/** Goes over all loss tokens of the batch in their order, a stretch at a time, and hands on what `step` returned for the one before. */
function foldLoss(
  advantages: readonly Float64Array[],
  stretches: readonly Stretches[],
  step: (before: number, gaps: Float64Array, from: number, to: number) => number,
): number {
  let value = 0;
  for (let d = 0; d < advantages.length; d++) {
    const gaps = at(advantages, d);
    const own = at(stretches, d);
    for (let s = 0; s < own.length; s += 2) value = step(value, gaps, own[s] as number, own[s + 1] as number);
  }
  return value;
}

/** Subtracts the mean over the batch from every advantage. */
function center(advantages: readonly Float64Array[], stretches: readonly Stretches[], lossTokens: number): void {
  const mean = foldLoss(advantages, stretches, addGaps) / lossTokens;
  foldLoss(advantages, stretches, (_, gaps, from, to) => subtract(mean, gaps, from, to));
}

function deviation(mean: number, advantages: readonly Float64Array[], stretches: readonly Stretches[], lossTokens: number): number {
  const squares = foldLoss(advantages, stretches, (before, gaps, from, to) => addSquares(before, mean, gaps, from, to));
  return Math.sqrt(squares / lossTokens);
}

function addGaps(before: number, gaps: Float64Array, from: number, to: number): number {
  let sum = before;
  for (let p = from; p < to; p++) sum += gaps[p] as number;
  return sum;
}

function addNonZero(before: number, gaps: Float64Array, from: number, to: number): number {
  let count = before;
  for (let p = from; p < to; p++) if (Math.fround(gaps[p] as number) !== 0) count++;
  return count;
}

function addSquares(before: number, mean: number, gaps: Float64Array, from: number, to: number): number {
  let squares = before;
  for (let p = from; p < to; p++) {
    const off = (gaps[p] as number) - mean;
    squares += off * off;
  }
  return squares;
}

function subtract(mean: number, gaps: Float64Array, from: number, to: number): number {
  for (let p = from; p < to; p++) gaps[p] = (gaps[p] as number) - mean;
  return to;
}
