import { lossPass } from './training-pass.ts';
import type { DenseWeights } from './types.ts';

/** ln p(token i | tokens before) of each prompt in nats; NaN at position 0. Prompts go through the model packed, up to 512 rows at once. */
export const promptLogprobs = (weights: DenseWeights, prompts: readonly Int32Array[]): Float32Array[] => {
  const scored = prompts.filter((prompt) => prompt.length > 1);
  const datums = scored.map((prompt) => ({
    tokens: prompt.subarray(0, -1),
    targets: prompt.subarray(1),
    weights: new Float32Array(prompt.length - 1),
  }));
  const { logprobs } = lossPass(weights, { loss: 'cross_entropy', datums }, null, 'linears');
  let next = 0;
  return prompts.map((prompt) => {
    const result = new Float32Array(prompt.length).fill(Number.NaN);
    if (prompt.length > 1) result.set(logprobs[next++] as Float32Array, 1);
    return result;
  });
};
