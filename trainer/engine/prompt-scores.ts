import { logSumExp } from './elementwise.ts';
import { heap as heapOfThread } from './heap.ts';
import { uniformStream } from './random.ts';
import { drawToken } from './sampling.ts';
import { emptyTopk, selectTop } from './topk.ts';
import type { DecodeRequest, PromptTargets, TopkLogprobs } from './types.ts';

/** A constant of this module: a test runner turns imported names into property reads, which are slow in loops. */
const heap = heapOfThread;

/** What is known of a prompt's tokens: nothing (NaN, ids −1) until `scorePrompt`, and at position 0 never anything. */
export type PromptScores = {
  readonly promptLogprobs: Float32Array | null;
  readonly topkPromptLogprobs: TopkLogprobs | null;
  readonly promptTargetLogprobs: Float32Array | null;
  readonly promptAlternatives: TopkLogprobs | null;
};

export const NO_SCORES: PromptScores = {
  promptLogprobs: null,
  topkPromptLogprobs: null,
  promptTargetLogprobs: null,
  promptAlternatives: null,
};

/** Room for what the request wants to know about its prompt; null when that is nothing. */
export const unscored = (request: DecodeRequest): PromptScores | null => {
  const { prompt, promptLogprobs, topkPromptLogprobs: k, promptTargets, promptAlternatives: draws = 0 } = request;
  if (!promptLogprobs && k === 0 && promptTargets === undefined && draws === 0) return null;
  return {
    promptLogprobs: promptLogprobs ? new Float32Array(prompt.length).fill(Number.NaN) : null,
    topkPromptLogprobs: k > 0 ? emptyTopk(prompt.length, k) : null,
    promptTargetLogprobs: promptTargets === undefined ? null : new Float32Array(promptTargets.ids.length).fill(Number.NaN),
    promptAlternatives: draws > 0 ? emptyTopk(prompt.length - 1, draws) : null,
  };
};

/** Fills the scores from the prompt's logits [length, vocab] in the heap: row i is about token i + 1. */
export const scorePrompt = (scores: PromptScores, request: DecodeRequest, logits: number, vocab: number): void => {
  const { promptLogprobs, topkPromptLogprobs, promptTargetLogprobs, promptAlternatives } = scores;
  const { prompt, promptTargets } = request;
  const normalizers = new Float64Array(prompt.length - 1);
  for (let i = 1; i < prompt.length; i++) {
    const at = logits + (i - 1) * vocab;
    const normalizer = logSumExp(at, vocab, 1);
    normalizers[i - 1] = normalizer;
    if (promptLogprobs) promptLogprobs[i] = (heap[at + (prompt[i] as number)] as number) - normalizer;
    if (topkPromptLogprobs) selectTop(topkPromptLogprobs, i, at, vocab, 1, normalizer);
  }
  if (promptTargets && promptTargetLogprobs) scoreTargets(promptTargets, promptTargetLogprobs, logits, vocab, normalizers);
  if (promptAlternatives) drawAlternatives(promptAlternatives, request, logits, vocab, normalizers);
};

const scoreTargets = (
  { rows, ids }: PromptTargets,
  logprobs: Float32Array,
  logits: number,
  vocab: number,
  normalizers: Float64Array,
): void => {
  ids.forEach((id, cell) => {
    const row = rows[cell] as number;
    if (id >= 0) logprobs[cell] = (heap[logits + row * vocab + id] as number) - (normalizers[row] as number);
  });
};

/** The draws come from a stream of their own, so that the sampled tokens are the same with and without them. */
const drawAlternatives = (
  { k, tokenIds, logprobs }: TopkLogprobs,
  { temperature, seed }: DecodeRequest,
  logits: number,
  vocab: number,
  normalizers: Float64Array,
): void => {
  const uniform = uniformStream((seed ^ 0x2545_f491) >>> 0);
  tokenIds.forEach((_, i) => {
    const row = Math.floor(i / k);
    const { token } = drawToken(logits + row * vocab, vocab, { temperature }, uniform);
    tokenIds[i] = token;
    logprobs[i] = (heap[logits + row * vocab + token] as number) - (normalizers[row] as number);
  });
};

/** Takes the log-probabilities and candidates of all positions before `position` back. */
export const forgetScoresBefore = (
  { promptLogprobs, topkPromptLogprobs }: Pick<PromptScores, 'promptLogprobs' | 'topkPromptLogprobs'>,
  position: number,
): void => {
  promptLogprobs?.fill(Number.NaN, 0, position);
  topkPromptLogprobs?.tokenIds.fill(-1, 0, position * topkPromptLogprobs.k);
  topkPromptLogprobs?.logprobs.fill(Number.NaN, 0, position * topkPromptLogprobs.k);
};
