import { at } from '../lists.ts';
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
  /** Loss tokens whose advantage is not exactly 0; a batch with none trains nothing. */
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
  const kl = { sum: 0, count: 0 };
  let clippedTokens = 0;
  datums.forEach((datum, i) => {
    const row = at(rows, i);
    // A row of the wrong length cannot be paired with tokens. Every other one counts in the KL: the scores of a dropped datum are real.
    if (row.length !== datum.tokens.length) return;
    addKl(kl, datum, row);
    const stretches = lossStretches(datum.mask);
    if (!scoresEveryLossToken(row, stretches)) return;
    const gaps = new Float64Array(row.length);
    clippedTokens += fillGaps(gaps, datum, row, stretches, clip);
    kept.push(datum);
    advantages.push(gaps);
    keptStretches.push(stretches);
  });
  if (options.centerAdvantages) center(advantages, keptStretches);
  const { sum, lossTokens, nonZeroTokens } = sumsOf(advantages, keptStretches);
  const advantageMean = lossTokens === 0 ? null : sum / lossTokens;
  const stats: AdvantageStats = {
    datums: kept.length,
    mismatchDrops: datums.length - kept.length,
    clippedTokens,
    lossTokens,
    contextTokens: kept.reduce((tokens, { mask }) => tokens + mask.length, 0) - lossTokens,
    nonZeroTokens,
    advantageMean,
    advantageStd: advantageMean === null ? null : Math.sqrt(squaresAround(advantageMean, advantages, keptStretches) / lossTokens),
  };
  return { kept, advantages, stats, reverseKlNatsPerToken: kl.count === 0 ? null : kl.sum / kl.count };
}

/** The loss positions of a datum, as `lossStretches` gives them: the loops below visit no others. */
type Stretches = readonly number[];

/** Adds student − teacher of every position that has a score. */
function addKl(kl: { sum: number; count: number }, { logprobs }: Datum, row: Float64Array): void {
  let { sum, count } = kl;
  for (let p = 1; p < row.length; p++) {
    const score = row[p] as number;
    if (!Number.isFinite(score)) continue;
    sum += (logprobs[p] as number) - score;
    count++;
  }
  kl.sum = sum;
  kl.count = count;
}

/** Position 0 has nothing before it that could predict it: a loss token there has no score. */
function scoresEveryLossToken(row: Float64Array, stretches: Stretches): boolean {
  if (stretches[0] === 0) return false;
  for (let s = 0; s < stretches.length; s += 2) {
    const to = stretches[s + 1] as number;
    for (let p = stretches[s] as number; p < to; p++) if (!Number.isFinite(row[p])) return false;
  }
  return true;
}

/** Writes teacher − student at loss positions, clipped; returns how many were clipped. */
function fillGaps(gaps: Float64Array, { logprobs }: Datum, row: Float64Array, stretches: Stretches, clip: number): number {
  let clipped = 0;
  for (let s = 0; s < stretches.length; s += 2) {
    const to = stretches[s + 1] as number;
    for (let p = stretches[s] as number; p < to; p++) {
      const gap = (row[p] as number) - (logprobs[p] as number);
      if (gap > clip || gap < -clip) clipped++;
      gaps[p] = Math.max(-clip, Math.min(clip, gap));
    }
  }
  return clipped;
}

/** Over all loss tokens of the batch, in their order. */
function sumsOf(advantages: readonly Float64Array[], stretches: readonly Stretches[]) {
  const sums = { sum: 0, lossTokens: 0, nonZeroTokens: 0 };
  advantages.forEach((gaps, d) => {
    addGaps(sums, gaps, at(stretches, d));
  });
  return sums;
}

function addGaps(sums: { sum: number; lossTokens: number; nonZeroTokens: number }, gaps: Float64Array, stretches: Stretches): void {
  let { sum, nonZeroTokens } = sums;
  for (let s = 0; s < stretches.length; s += 2) {
    const to = stretches[s + 1] as number;
    for (let p = stretches[s] as number; p < to; p++) {
      sum += gaps[p] as number;
      if (gaps[p] !== 0) nonZeroTokens++;
    }
  }
  sums.sum = sum;
  sums.nonZeroTokens = nonZeroTokens;
  sums.lossTokens += lengthOf(stretches);
}

function squaresAround(mean: number, advantages: readonly Float64Array[], stretches: readonly Stretches[]): number {
  return advantages.reduce((sum, gaps, d) => addSquares(sum, mean, gaps, at(stretches, d)), 0);
}

function addSquares(before: number, mean: number, gaps: Float64Array, stretches: Stretches): number {
  let squares = before;
  for (let s = 0; s < stretches.length; s += 2) {
    const to = stretches[s + 1] as number;
    for (let p = stretches[s] as number; p < to; p++) {
      const off = (gaps[p] as number) - mean;
      squares += off * off;
    }
  }
  return squares;
}

function center(advantages: readonly Float64Array[], stretches: readonly Stretches[]): void {
  const { sum, lossTokens } = sumsOf(advantages, stretches);
  if (lossTokens === 0) return;
  advantages.forEach((gaps, d) => {
    subtract(sum / lossTokens, gaps, at(stretches, d));
  });
}

function subtract(mean: number, gaps: Float64Array, stretches: Stretches): void {
  for (let s = 0; s < stretches.length; s += 2) {
    const to = stretches[s + 1] as number;
    for (let p = stretches[s] as number; p < to; p++) gaps[p] = (gaps[p] as number) - mean;
  }
}
