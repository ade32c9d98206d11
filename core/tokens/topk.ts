import { at } from '../lists.ts';
import type { Datum } from './span.ts';
import { datumName, TokenError } from './token-error.ts';
import { type CrossEntropyWire, shiftTokens } from './wire.ts';

/**
 * A teacher's best candidates for each token of one datum, in columns: position p has `counts[p]` candidates (−1: the teacher gave none
 * there) at `tokens` and `logprobs` from `p * width` on. Order does not matter.
 */
export type TopkRow = {
  readonly width: number;
  readonly counts: Int32Array;
  readonly tokens: Int32Array;
  readonly logprobs: Float64Array;
};

/** One copy of a source datum whose targets are the teacher's candidates of one rank. Unshifted, lists of one length. */
export type Replica = {
  /** Index of the source among the datums handed in. */
  readonly source: number;
  readonly datum: Datum;
  readonly targetTokens: Int32Array;
  readonly targetWeights: Float64Array;
};

export type TopkStats = {
  readonly sourceDatums: number;
  readonly datums: number;
  readonly mismatchDrops: number;
  readonly lossTokens: number;
  readonly contextTokens: number;
};

/**
 * `k` replicas per source, source by source, best rank first. At a loss position the weights of the ranks are the teacher's renormalised
 * probabilities; a rank without a candidate keeps the sampled token with weight 0. Sources with an unscored loss position, a row of the
 * wrong length or a loss token at position 0 are dropped and counted; candidates at context positions are never looked at.
 * @throws TokenError `row_count_mismatch`; `too_many_candidates` when a loss position has more than k; `bad_option` when k is not ≥ 1.
 */
export function buildTopkReplicas(
  datums: readonly Datum[],
  rows: readonly TopkRow[],
  k: number,
): { replicas: Replica[]; stats: TopkStats } {
  if (!Number.isInteger(k) || k < 1) throw new TokenError('bad_option', 'topk', `k must be a whole number of at least 1; got ${k}`);
  if (rows.length !== datums.length) {
    throw new TokenError('row_count_mismatch', 'batch', `${rows.length} top-k rows for ${datums.length} datums; each datum needs one`);
  }
  const replicas: Replica[] = [];
  let mismatchDrops = 0;
  let lossTokens = 0;
  let contextTokens = 0;
  datums.forEach((datum, source) => {
    const row = at(rows, source);
    if (!usable(datum, row)) {
      mismatchDrops++;
      return;
    }
    const ranks = Array.from({ length: k }, () => ({
      source,
      datum,
      targetTokens: datum.tokens.slice(),
      targetWeights: new Float64Array(datum.tokens.length),
    }));
    datum.mask.forEach((isLoss, p) => {
      if (isLoss === 0) {
        contextTokens++;
        return;
      }
      lossTokens++;
      fillPosition(ranks, datum, row, p);
    });
    replicas.push(...ranks);
  });
  const sourceDatums = datums.length - mismatchDrops;
  return { replicas, stats: { sourceDatums, datums: replicas.length, mismatchDrops, lossTokens, contextTokens } };
}

/** Shifted cross-entropy lists of replicas. @throws TokenError `too_short`. */
export function topkToWire(replicas: readonly Replica[]): CrossEntropyWire[] {
  return replicas.map(({ datum, targetTokens, targetWeights }) => ({
    modelInput: shiftTokens(datum).modelInput,
    targetTokens: targetTokens.subarray(1),
    weights: new Float32Array(targetWeights.subarray(1)),
  }));
}

/** Probabilities of a candidate list, made to sum to 1; stable for very small ones (log-sum-exp). */
export function renormalize(logprobs: ArrayLike<number>): Float64Array {
  const weights = Float64Array.from(logprobs);
  const best = weights.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
  const total = weights.reduce((sum, logprob) => sum + Math.exp(logprob - best), 0);
  return weights.map((logprob) => Math.exp(logprob - best) / total);
}

function usable(datum: Datum, row: TopkRow): boolean {
  if (row.counts.length !== datum.tokens.length || datum.mask[0] === 1) return false;
  return datum.mask.every((isLoss, p) => {
    if (isLoss === 0) return true;
    const count = row.counts[p] as number;
    if (count < 1) return false;
    const from = p * row.width;
    return row.logprobs.subarray(from, from + count).every((logprob) => Number.isFinite(logprob));
  });
}

function fillPosition(ranks: readonly Replica[], datum: Datum, row: TopkRow, p: number): void {
  const count = row.counts[p] as number;
  if (count > ranks.length) {
    const message = `${count} candidates at loss position ${p}, but topk is ${ranks.length}; ask the teacher for no more than that`;
    throw new TokenError('too_many_candidates', datumName(datum), message);
  }
  const from = p * row.width;
  const tokens = row.tokens.subarray(from, from + count);
  const logprobs = row.logprobs.subarray(from, from + count);
  const order = Array.from(tokens.keys()).sort(
    (a, b) => (logprobs[b] as number) - (logprobs[a] as number) || (tokens[a] as number) - (tokens[b] as number),
  );
  const weights = renormalize(order.map((i) => logprobs[i] as number));
  order.forEach((i, rank) => {
    at(ranks, rank).targetTokens[p] = tokens[i] as number;
    at(ranks, rank).targetWeights[p] = weights[rank] as number;
  });
}
