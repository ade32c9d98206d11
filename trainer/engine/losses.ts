import type { LossBatch } from './types.ts';

/** One target's loss and the factor of (softmax − onehot) in the gradient of its logits, given its log-probability now. */
export type TokenLoss = (datum: number, target: number, logprob: number) => { readonly value: number; readonly coefficient: number };

/**
 * The three losses, summed over tokens: cross_entropy −lp·w; importance_sampling −r·a; ppo −min(r·a, clip(r)·a), with r = exp(lp − sampled lp).
 * All of them reach the logits as coefficient·(softmax − onehot), so one backward pass serves them.
 */
export const tokenLoss = (batch: LossBatch): TokenLoss => {
  if (batch.loss === 'cross_entropy') {
    return (datum, row, logprob) => {
      const weight = batch.datums[datum]?.weights[row] ?? 0;
      return { value: weight === 0 ? 0 : -logprob * weight, coefficient: weight };
    };
  }
  const [low, high] = batch.loss === 'ppo' ? [batch.clipLow, batch.clipHigh] : [0, Number.POSITIVE_INFINITY];
  return (datum, row, logprob) => {
    const advantage = batch.datums[datum]?.advantages[row] ?? 0;
    // Context rows carry advantage 0 and no meaningful sampled log-probability.
    if (advantage === 0) return { value: 0, coefficient: 0 };
    const ratio = Math.exp(logprob - (batch.datums[datum]?.logprobs[row] ?? 0));
    const clipped = Math.min(Math.max(ratio, low), high);
    const isClipped = clipped * advantage < ratio * advantage;
    return { value: -(isClipped ? clipped : ratio) * advantage, coefficient: isClipped ? 0 : ratio * advantage };
  };
};
