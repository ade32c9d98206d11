import { logSumExp } from './elementwise.ts';
import { exponentials, heap as heapOfThread, reserve } from './heap.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

const MAX_VOCAB = 4096;
const weightsAt = reserve('sampling weights', MAX_VOCAB);

/**
 * One token from softmax(logits / temperature), and its log-probability under that same distribution. Temperature 0 takes the
 * most likely token (the first of equals) with its plain log-probability.
 */
export const drawToken = (
  logits: number,
  vocab: number,
  temperature: number,
  uniform: () => number,
): { token: number; logprob: number } => {
  const sharpness = temperature === 0 ? 1 : 1 / temperature;
  const normalizer = logSumExp(logits, vocab, sharpness);
  const token = temperature === 0 ? mostLikely(logits, vocab) : drawn(logits, vocab, sharpness, normalizer, uniform());
  return { token, logprob: (heap[logits + token] as number) * sharpness - normalizer };
};

const mostLikely = (logits: number, vocab: number): number => {
  let best = 0;
  for (let i = 1; i < vocab; i++) if ((heap[logits + i] as number) > (heap[logits + best] as number)) best = i;
  return best;
};

const drawn = (logits: number, vocab: number, sharpness: number, normalizer: number, point: number): number => {
  exponentials(logits, weightsAt, vocab, sharpness, -normalizer);
  let sum = 0;
  for (let i = 0; i < vocab; i++) {
    sum += heap[weightsAt + i] as number;
    if (point < sum) return i;
  }
  // The probabilities sum to 1 only up to rounding.
  return mostLikely(logits, vocab);
};
