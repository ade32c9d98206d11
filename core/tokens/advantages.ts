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
    for (let p = 0; p < gaps.length; p++) {
      if (datum.mask[p] === 0) continue;
      const gap = (row[p] as number) - (datum.logprobs[p] as number);
      if (Math.abs(gap) > clip) clippedTokens++;
      gaps[p] = Math.max(-clip, Math.min(clip, gap));
    }
    kept.push(datum);
    advantages.push(gaps);
  });
  if (options.centerAdvantages) center(kept, advantages);
  const stats = { datums: kept.length, mismatchDrops, clippedTokens, ...countTokens(kept), ...spread(kept, advantages) };
  return { kept, advantages, stats, reverseKlNatsPerToken: reverseKl(datums, rows) };
}

function scoresEveryLossToken(datum: Datum, row: Float64Array): boolean {
  if (row.length !== datum.tokens.length || datum.mask[0] === 1) return false;
  for (let p = 1; p < row.length; p++) if (datum.mask[p] === 1 && !Number.isFinite(row[p])) return false;
  return true;
}

function lossMean(datums: readonly Datum[], values: readonly Float64Array[], of: (value: number) => number): number | null {
  let sum = 0;
  let count = 0;
  datums.forEach(({ mask }, d) => {
    const list = at(values, d);
    for (let p = 0; p < mask.length; p++) {
      if (mask[p] === 0) continue;
      sum += of(list[p] as number);
      count++;
    }
  });
  return count === 0 ? null : sum / count;
}

function center(datums: readonly Datum[], advantages: readonly Float64Array[]): void {
  const mean = lossMean(datums, advantages, (a) => a) ?? 0;
  datums.forEach(({ mask }, d) => {
    const list = at(advantages, d);
    for (let p = 0; p < mask.length; p++) if (mask[p] === 1) list[p] = (list[p] as number) - mean;
  });
}

function spread(datums: readonly Datum[], advantages: readonly Float64Array[]) {
  const advantageMean = lossMean(datums, advantages, (a) => a);
  const variance = lossMean(datums, advantages, (a) => (a - (advantageMean ?? 0)) ** 2);
  let nonZeroTokens = 0;
  for (const list of advantages) for (let p = 0; p < list.length; p++) if (list[p] !== 0) nonZeroTokens++;
  return { advantageMean, advantageStd: variance === null ? null : Math.sqrt(variance), nonZeroTokens };
}

/** Dropped datums count too: their scores are real. A row of the wrong length cannot be paired with tokens and is left out. */
function reverseKl(datums: readonly Datum[], rows: readonly Float64Array[]): number | null {
  let sum = 0;
  let count = 0;
  datums.forEach(({ logprobs }, d) => {
    const row = at(rows, d);
    if (row.length !== logprobs.length) return;
    for (let p = 1; p < row.length; p++) {
      if (!Number.isFinite(row[p])) continue;
      sum += (logprobs[p] as number) - (row[p] as number);
      count++;
    }
  });
  return count === 0 ? null : sum / count;
}
