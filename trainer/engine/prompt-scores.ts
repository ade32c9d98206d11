import { logSumExp } from './elementwise.ts';
import { heap as heapOfThread } from './heap.ts';
import type { TopkLogprobs } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** What is known of a prompt's tokens: nothing (NaN, ids −1) until `scorePrompt`, and at position 0 never anything. */
export type PromptScores = { readonly promptLogprobs: Float32Array | null; readonly topkPromptLogprobs: TopkLogprobs | null };

/** Room for the scores of a prompt of `length` tokens; null for what is not wanted. `k` 0 wants no candidates. */
export const unscored = (length: number, wantsLogprobs: boolean, k: number): PromptScores => ({
  promptLogprobs: wantsLogprobs ? new Float32Array(length).fill(Number.NaN) : null,
  topkPromptLogprobs:
    k > 0 ? { k, tokenIds: new Int32Array(length * k).fill(-1), logprobs: new Float32Array(length * k).fill(Number.NaN) } : null,
});

/** Fills the scores from the prompt's logits [length, vocab] in the heap: row i is about token i + 1. */
export const scorePrompt = (scores: PromptScores, prompt: Int32Array, logits: number, vocab: number): void => {
  const { promptLogprobs, topkPromptLogprobs } = scores;
  for (let i = 1; i < prompt.length; i++) {
    const at = logits + (i - 1) * vocab;
    const normalizer = logSumExp(at, vocab, 1);
    if (promptLogprobs) promptLogprobs[i] = (heap[at + (prompt[i] as number)] as number) - normalizer;
    if (topkPromptLogprobs) selectTop(topkPromptLogprobs, i, at, vocab, normalizer);
  }
};

/** Takes the scores of all positions before `position` back. */
export const forgetScoresBefore = ({ promptLogprobs, topkPromptLogprobs }: PromptScores, position: number): void => {
  promptLogprobs?.fill(Number.NaN, 0, position);
  topkPromptLogprobs?.tokenIds.fill(-1, 0, position * topkPromptLogprobs.k);
  topkPromptLogprobs?.logprobs.fill(Number.NaN, 0, position * topkPromptLogprobs.k);
};

/**
 * Row `position` of the table: the k likeliest tokens, best first. Ids come in ascending order and only a larger log-probability moves
 * ahead, so the lower id stands first among equals; they are compared as the float32 that the table shows. A NaN is no candidate.
 */
const selectTop = (table: TopkLogprobs, position: number, logits: number, vocab: number, normalizer: number): void => {
  const { k, tokenIds, logprobs } = table;
  const first = position * k;
  let filled = 0;
  for (let id = 0; id < vocab; id++) {
    const logprob = Math.fround((heap[logits + id] as number) - normalizer);
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
