import { topkLimit } from './shape.ts';
import type { DecodeRequest, ModelShape } from './types.ts';

/** Throws a RangeError that names the field a model of this shape cannot serve. */
export const checkRequest = ({ vocab, context }: ModelShape, request: DecodeRequest): void => {
  const { prompt, maxTokens, temperature, seed, topK = vocab, topP = 1, promptTargets } = request;
  if (prompt.length === 0) refuse('prompt is empty; it needs at least one token');
  for (const id of prompt) if (id < 0 || id >= vocab) refuse(`prompt holds id ${id}; this vocabulary has 0 to ${vocab - 1}`);
  if (!Number.isInteger(maxTokens) || maxTokens < 0) refuse(`max_tokens is ${maxTokens}; it must be a whole number from 0`);
  if (prompt.length + maxTokens > context) {
    refuse(`prompt of ${prompt.length} tokens and max_tokens ${maxTokens} are more than the context of ${context}; lower max_tokens`);
  }
  if (!(temperature >= 0) || temperature === Number.POSITIVE_INFINITY) refuse(`temperature is ${temperature}; it must be a number from 0`);
  if (!Number.isSafeInteger(seed)) refuse(`seed is ${seed}; it must be a whole number`);
  if (!Number.isInteger(topK) || topK < 1) refuse(`top_k is ${topK}; it must be a whole number from 1`);
  if (!(topP > 0 && topP <= 1)) refuse(`top_p is ${topP}; it must be above 0 and at most 1`);
  checkTopk(vocab, 'topk_prompt_logprobs', request.topkPromptLogprobs);
  checkTopk(vocab, 'topk_sample_logprobs', request.topkSampledLogprobs ?? 0);
  checkTopk(vocab, 'prompt_alt_tokens_k', request.promptAlternatives ?? 0);
  for (const id of promptTargets?.ids ?? []) {
    if (id < -1 || id >= vocab)
      refuse(`target_prompt_logprobs holds id ${id}; this vocabulary has 0 to ${vocab - 1}, and -1 asks for nothing`);
  }
  for (const row of promptTargets?.rows ?? []) {
    if (row < 0 || row >= prompt.length - 1) refuse(`target_prompt_logprobs has a cell in row ${row}; there are ${prompt.length - 1} rows`);
  }
};

const checkTopk = (vocab: number, field: string, k: number): void => {
  const limit = topkLimit(vocab);
  if (!Number.isInteger(k) || k < 0 || k > limit) refuse(`${field} is ${k}; it must be a whole number from 0 (none) to ${limit}`);
};

const refuse = (why: string): never => {
  throw new RangeError(why);
};
