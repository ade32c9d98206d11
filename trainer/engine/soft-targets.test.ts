import { describe, expect, it } from 'vitest';
import { naiveDistributions } from './naive-model.ts';
import { lossPass } from './training-pass.ts';
import type { ModelShape } from './types.ts';
import { initialWeights } from './weights.ts';

const SHAPE: ModelShape = { vocab: 24, width: 16, layers: 2, heads: 2, hidden: 20, context: 24 };
const weights = initialWeights(SHAPE, 3);

describe('cross_entropy with every token as a target, weighted by the probability it has', () => {
  const tokens = Int32Array.from({ length: 10 }, (_, i) => (7 * i * i + 3) % SHAPE.vocab);
  const distributions = naiveDistributions(weights, tokens);
  const datums = Array.from({ length: SHAPE.vocab }, (_, id) => ({
    tokens,
    targets: new Int32Array(tokens.length).fill(id),
    weights: Float32Array.from(distributions, (row) => Math.exp(row[id] as number)),
  }));
  const gradient = new Float32Array(weights.values.length);
  const { metrics } = lossPass(weights, { loss: 'cross_entropy', datums }, gradient, 'all');

  it('is the entropy of the model, which no step can lower', () => {
    const entropy = distributions.flat().reduce((sum, logprob) => sum - logprob * Math.exp(logprob), 0);
    expect(metrics['loss:sum']).toBeCloseTo(entropy, 4);
    expect(Math.max(...gradient.map(Math.abs))).toBeLessThan(1e-5);
    const one = new Float32Array(weights.values.length);
    lossPass(weights, { loss: 'cross_entropy', datums: datums.slice(0, 1) }, one, 'all');
    expect(Math.max(...one.map(Math.abs))).toBeGreaterThan(1e-2);
  });
});
