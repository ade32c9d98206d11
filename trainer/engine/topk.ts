import { heap as heapOfThread } from './heap.ts';
import type { TopkLogprobs } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** Room for `k` tokens at each of `length` positions; ids −1 and NaN where nothing is known. */
export const emptyTopk = (length: number, k: number): TopkLogprobs => ({
  k,
  tokenIds: new Int32Array(length * k).fill(-1),
  logprobs: new Float32Array(length * k).fill(Number.NaN),
});

/**
 * Row `position` of the table: the k likeliest tokens, best first, of logits · sharpness − normalizer. Ids come in ascending order and only
 * a larger log-probability moves ahead, so the lower id stands first among equals; they are compared as the float32 that the table shows.
 * A NaN is no candidate.
 */
export const selectTop = (
  table: TopkLogprobs,
  position: number,
  logits: number,
  vocab: number,
  sharpness: number,
  normalizer: number,
): void => {
  const { k, tokenIds, logprobs } = table;
  const first = position * k;
  let filled = 0;
  for (let id = 0; id < vocab; id++) {
    const logprob = Math.fround((heap[logits + id] as number) * sharpness - normalizer);
    if (filled === k ? !(logprob > (logprobs[first + k - 1] as number)) : Number.isNaN(logprob)) continue;
    if (filled < k) filled += 1;
    let slot = first + filled - 1;
    for (; slot > first && (logprobs[slot - 1] as number) < logprob; slot--) {
      tokenIds[slot] = tokenIds[slot - 1] as number;
      logprobs[slot] = logprobs[slot - 1] as number;
    }
    tokenIds[slot] = id;
    logprobs[slot] = logprob;
  }
};
