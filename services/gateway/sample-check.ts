import type { SampleResult } from './token-sampler.ts';

/** A sampling result as it goes into a span: own copies, unusable log-probabilities as NaN. */
export type CheckedSample = { readonly sampled: Int32Array; readonly logprobs: Float64Array; readonly maskedTokens: number };

/** A sampler's answer that cannot be trained on or spliced as a whole. */
export class BadSampleError extends Error {
  override readonly name = 'BadSampleError';
}

/**
 * Copies a result, because a sampler may reuse its buffers. A log-probability that is NaN, infinite or positive is no number a
 * sampler can mean: its token is masked (NaN) and counted, the others stay.
 * @throws BadSampleError when ids and log-probabilities differ in number, nothing or too much was sampled, or an id is outside the vocabulary.
 */
export function checkSample(result: SampleResult, limits: { readonly maxTokens: number; readonly vocabularySize: number }): CheckedSample {
  const { tokens } = result;
  if (tokens.length !== result.logprobs.length)
    throw new BadSampleError(`the sampler returned ${tokens.length} ids but ${result.logprobs.length} log-probabilities`);
  if (tokens.length === 0) throw new BadSampleError('the sampler returned no ids, not even a stop token');
  if (tokens.length > limits.maxTokens)
    throw new BadSampleError(`the sampler returned ${tokens.length} ids where at most ${limits.maxTokens} were asked`);
  const outside = tokens.find((id) => id < 0 || id >= limits.vocabularySize);
  if (outside !== undefined)
    throw new BadSampleError(`the sampler returned id ${outside}, outside the renderer's vocabulary of ${limits.vocabularySize}`);
  let maskedTokens = 0;
  const logprobs = Float64Array.from(result.logprobs, (value) => {
    if (Number.isFinite(value) && value <= 0) return value;
    maskedTokens++;
    return Number.NaN;
  });
  return { sampled: Int32Array.from(tokens), logprobs, maskedTokens };
}
