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

  it('gives the same loss, log-probabilities and gradient with all tokens as columns of one row', () => {
    const { vocab } = SHAPE;
    const interleaved = (pick: (id: number, row: number) => number): number[] =>
      Array.from({ length: tokens.length * vocab }, (_, i) => pick(i % vocab, Math.floor(i / vocab)));
    const soft = {
      tokens,
      columns: vocab,
      targets: Int32Array.from(interleaved((id) => id)),
      weights: Float32Array.from(interleaved((id, row) => (id % 3 === 0 ? (datums[id]?.weights[row] ?? 0) : 0))),
    };
    const thirds = datums.map((datum, id) => (id % 3 === 0 ? datum : { ...datum, weights: new Float32Array(tokens.length) }));
    const [wide, narrow] = [soft, null].map((one) => {
      const into = new Float32Array(weights.values.length);
      return { into, ...lossPass(weights, { loss: 'cross_entropy', datums: one === null ? thirds : [one] }, into, 'all') };
    });
    if (wide === undefined || narrow === undefined) throw new Error('unreachable');
    expect(wide.metrics['loss:sum']).toBeCloseTo(narrow.metrics['loss:sum'], 4);
    expect([...(wide.logprobs[0] ?? [])]).toEqual(interleaved((id, row) => narrow.logprobs[id]?.[row] ?? Number.NaN));
    expect(Math.max(...narrow.into.map(Math.abs))).toBeGreaterThan(1e-2);
    expect(Math.max(...wide.into.map((value, i) => Math.abs(value - (narrow.into[i] ?? 0))))).toBeLessThan(1e-5);
  });
});
