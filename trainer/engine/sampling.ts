import { logSumExp } from './elementwise.ts';
import { exponentials, heap as heapOfThread, reserve } from './heap.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

const MAX_VOCAB = 4096;
const weightsAt = reserve('sampling weights', MAX_VOCAB);

/** How a token is drawn from logits. Temperature 0 is greedy. */
export type Drawing = {
  readonly temperature: number;
  /** Only the so many likeliest tokens are drawn from; absent for all. */
  readonly topK?: number | undefined;
  /** After topK, only the fewest likeliest tokens that together have this share of the probability; absent or 1 for all. */
  readonly topP?: number | undefined;
};
/** `normalizer` turns the logits into log-probabilities: logit · sharpness − normalizer. */
export type Drawn = { readonly token: number; readonly logprob: number; readonly sharpness: number; readonly normalizer: number };

/**
 * One token from softmax(logits / temperature), and its log-probability under that same distribution. Temperature 0 takes the
 * most likely token (the first of equals) with its plain log-probability. `topK` and `topP` narrow the choice, not the log-probability:
 * scoring the same tokens again gives the same numbers.
 */
export const drawToken = (logits: number, vocab: number, drawing: Drawing, uniform: () => number): Drawn => {
  const { temperature, topK = vocab, topP = 1 } = drawing;
  const sharpness = temperature === 0 ? 1 : 1 / temperature;
  const normalizer = logSumExp(logits, vocab, sharpness);
  const token =
    temperature === 0
      ? mostLikely(logits, vocab)
      : topK >= vocab && topP >= 1
        ? drawn(logits, vocab, sharpness, normalizer, uniform())
        : drawnFromFew(logits, vocab, sharpness, normalizer, topK, topP, uniform());
  return { token, logprob: (heap[logits + token] as number) * sharpness - normalizer, sharpness, normalizer };
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

/** Draws in id order from the kept tokens, as `drawn` does from all; the likelier come first into the choice, the lower id among equals. */
const drawnFromFew = (
  logits: number,
  vocab: number,
  sharpness: number,
  normalizer: number,
  topK: number,
  topP: number,
  point: number,
): number => {
  exponentials(logits, weightsAt, vocab, sharpness, -normalizer);
  const weight = (id: number): number => heap[weightsAt + id] as number;
  const ranked = Array.from({ length: vocab }, (_, id) => id).sort((a, b) => weight(b) - weight(a) || a - b);
  const candidates = ranked.slice(0, topK);
  const enough = topP * candidates.reduce((sum, id) => sum + weight(id), 0);
  let mass = 0;
  let kept = 0;
  while (kept < candidates.length && (kept === 0 || mass < enough)) mass += weight(candidates[kept++] as number);
  let sum = 0;
  for (const id of candidates.slice(0, kept).sort((a, b) => a - b)) {
    sum += weight(id);
    if (point * mass < sum) return id;
  }
  return ranked[0] as number;
};
