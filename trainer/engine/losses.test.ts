import { describe, expect, it } from 'vitest';
import { tokenLoss } from './losses.ts';
import type { LossBatch } from './types.ts';

const one = { tokens: Int32Array.of(1), targets: Int32Array.of(2) };
const policy = (loss: 'importance_sampling' | 'ppo', advantage: number): LossBatch => {
  const datums = [{ ...one, logprobs: Float32Array.of(0), advantages: Float32Array.of(advantage) }];
  return loss === 'ppo' ? { loss, datums, clipLow: 0.8, clipHigh: 1.2 } : { loss, datums };
};
const at = (batch: LossBatch, ratio: number) => tokenLoss(batch)(0, 0, Math.log(ratio));

describe('the three losses of one token, as functions of the ratio to the sampling policy', () => {
  it.each([
    ['importance_sampling', 2, 1.5, -3, 3],
    ['importance_sampling', -2, 0.25, 0.5, -0.5],
    ['ppo', 2, 1.1, -2.2, 2.2],
    ['ppo', 2, 1.5, -2.4, 0],
    ['ppo', 2, 0.5, -1, 1],
    ['ppo', -2, 0.5, 1.6, 0],
    ['ppo', -2, 1.5, 3, -3],
    ['ppo', 0, 1.5, 0, 0],
  ] as const)('%s, advantage %d at ratio %d: value %d, coefficient %d', (loss, advantage, ratio, value, coefficient) => {
    const result = at(policy(loss, advantage), ratio);
    expect(result.value).toBeCloseTo(value, 6);
    expect(result.coefficient).toBeCloseTo(coefficient, 6);
  });

  it('cross_entropy weighs −logprob', () => {
    const batch: LossBatch = { loss: 'cross_entropy', datums: [{ ...one, weights: Float32Array.of(0.5) }] };
    expect(tokenLoss(batch)(0, 0, -3)).toEqual({ value: 1.5, coefficient: 0.5 });
  });

  it('a context token whose sampled log-probability is 0 and whose own is tiny adds nothing', () => {
    expect(tokenLoss(policy('importance_sampling', 0))(0, 0, -200)).toEqual({ value: 0, coefficient: 0 });
  });
});
