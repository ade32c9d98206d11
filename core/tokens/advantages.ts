import { at } from '../lists.ts';
import { countTokens } from './datums.ts';
import type { Datum } from './span.ts';
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
  let clippedTokens = 0;
  let mismatchDrops = 0;
  datums.forEach((datum, i) => {
    const row = at(rows, i);
    if (!scoresEveryLossToken(datum, row)) {
      mismatchDrops++;
      return;
    }
    const gaps = new Float64Array(row.length);
    clippedTokens += fillGaps(gaps, datum, row, clip);
    kept.push(datum);
    advantages.push(gaps);
  });
  if (options.centerAdvantages) center(kept, advantages);
  const stats = { datums: kept.length, mismatchDrops, clippedTokens, ...countTokens(kept), ...spread(kept, advantages) };
  return { kept, advantages, stats, reverseKlNatsPerToken: reverseKl(datums, rows) };
}

/** Writes teacher − student at loss positions, clipped; returns how many were clipped. */
function fillGaps(gaps: Float64Array, { mask, logprobs }: Datum, row: Float64Array, clip: number): number {
  let clipped = 0;
  for (let p = 0; p < gaps.length; p++) {
    if (mask[p] === 0) continue;
    const gap = (row[p] as number) - (logprobs[p] as number);
    if (gap > clip || gap < -clip) clipped++;
    gaps[p] = Math.max(-clip, Math.min(clip, gap));
  }
  return clipped;
}

function scoresEveryLossToken(datum: Datum, row: Float64Array): boolean {
  if (row.length !== datum.tokens.length || datum.mask[0] === 1) return false;
  for (let p = 1; p < row.length; p++) if (datum.mask[p] === 1 && !Number.isFinite(row[p])) return false;
  return true;
}

/** Sums over loss tokens, in one pass; loops read typed arrays directly because a batch has millions of entries. */
function lossSums(
  datums: readonly Datum[],
  values: readonly Float64Array[],
  around: number,
): { sum: number; squares: number; count: number } {
  let sum = 0;
  let squares = 0;
  let count = 0;
  for (let d = 0; d < datums.length; d++) {
    const { mask } = at(datums, d);
    const list = at(values, d);
    for (let p = 0; p < mask.length; p++) {
      if (mask[p] === 0) continue;
      const value = (list[p] as number) - around;
      sum += value;
      squares += value * value;
      count++;
    }
  }
  return { sum, squares, count };
}

function center(datums: readonly Datum[], advantages: readonly Float64Array[]): void {
  const { sum, count } = lossSums(datums, advantages, 0);
  const mean = count === 0 ? 0 : sum / count;
  for (let d = 0; d < datums.length; d++) {
    const { mask } = at(datums, d);
    const list = at(advantages, d);
    for (let p = 0; p < mask.length; p++) if (mask[p] === 1) list[p] = (list[p] as number) - mean;
  }
}

function spread(datums: readonly Datum[], advantages: readonly Float64Array[]) {
  const { sum, count } = lossSums(datums, advantages, 0);
  let nonZeroTokens = 0;
  for (const list of advantages) for (let p = 0; p < list.length; p++) if (list[p] !== 0) nonZeroTokens++;
  if (count === 0) return { advantageMean: null, advantageStd: null, nonZeroTokens };
  const advantageMean = sum / count;
  const { squares } = lossSums(datums, advantages, advantageMean);
  return { advantageMean, advantageStd: Math.sqrt(squares / count), nonZeroTokens };
}

/** Dropped datums count too: their scores are real. A row of the wrong length cannot be paired with tokens and is left out. */
function reverseKl(datums: readonly Datum[], rows: readonly Float64Array[]): number | null {
  let sum = 0;
  let count = 0;
  datums.forEach(({ logprobs }, d) => {
    const row = at(rows, d);
    if (row.length !== logprobs.length) return;
    for (let p = 1; p < row.length; p++) {
      const score = row[p] as number;
      if (!Number.isFinite(score)) continue;
      sum += (logprobs[p] as number) - score;
      count++;
    }
  });
  return count === 0 ? null : sum / count;
}
