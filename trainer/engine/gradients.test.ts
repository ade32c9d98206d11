import { describe, expect, it } from 'vitest';
import { adapterTable, initialAdapter, mergeAdapter, projectGradient } from './adapter.ts';
import { type NaiveModel, naiveLogprobs } from './naive-model.ts';
import { normalStream, uniformStream } from './random.ts';
import { parameterTable } from './shape.ts';
import { lossPass } from './training-pass.ts';
import type { LossBatch, ModelShape } from './types.ts';
import { initialWeights } from './weights.ts';

const SHAPE: ModelShape = { vocab: 24, width: 16, layers: 2, heads: 2, hidden: 20, context: 24 };
const weights = initialWeights(SHAPE, 3);
const uniform = uniformStream(5);
const numbers = (count: number, low: number, high: number) => Float32Array.from({ length: count }, () => low + (high - low) * uniform());
const ids = (count: number) => Int32Array.from({ length: count }, () => Math.floor(uniform() * SHAPE.vocab));
const rows = [11, 1, 7].map((length) => ({ tokens: ids(length), targets: ids(length) }));

const batches: LossBatch[] = [
  { loss: 'cross_entropy', datums: rows.map((row) => ({ ...row, weights: numbers(row.tokens.length, -0.5, 1) })) },
  {
    loss: 'importance_sampling',
    datums: rows.map((row) => ({ ...row, advantages: numbers(row.tokens.length, -2, 2), logprobs: numbers(row.tokens.length, -4, -2) })),
  },
  {
    loss: 'ppo',
    clipLow: 0.8,
    clipHigh: 1.2,
    datums: rows.map((row) => ({
      ...row,
      advantages: numbers(row.tokens.length, -2, 2),
      logprobs: numbers(row.tokens.length, -3.6, -2.8),
    })),
  },
];

/** The losses of the protocol, written out from its table, over the float64 model. */
const naiveLoss = (model: NaiveModel, batch: LossBatch): number => {
  const perDatum = batch.datums.map(({ tokens, targets }) => naiveLogprobs(model, tokens, targets));
  const sum = (value: (logprob: number, datum: number, row: number) => number) =>
    perDatum.reduce((total, logprobs, d) => logprobs.reduce((inner, logprob, row) => inner + value(logprob, d, row), total), 0);
  if (batch.loss === 'cross_entropy') return sum((logprob, d, row) => -logprob * (batch.datums[d]?.weights[row] as number));
  const ratio = (logprob: number, d: number, row: number) => Math.exp(logprob - (batch.datums[d]?.logprobs[row] as number));
  const advantage = (d: number, row: number) => batch.datums[d]?.advantages[row] as number;
  if (batch.loss === 'importance_sampling') return sum((logprob, d, row) => -ratio(logprob, d, row) * advantage(d, row));
  const clip = (r: number) => Math.min(Math.max(r, batch.clipLow), batch.clipHigh);
  return sum((logprob, d, row) => -Math.min(ratio(logprob, d, row) * advantage(d, row), clip(ratio(logprob, d, row)) * advantage(d, row)));
};

/** d loss / d step at 0, moving along `direction`; central differences in float64. */
const slope = (loss: (values: Float64Array) => number, values: Float32Array, direction: (i: number) => number): number => {
  const step = 1e-5;
  const moved = (sign: number) => loss(Float64Array.from(values, (value, i) => value + sign * step * direction(i)));
  return (moved(1) - moved(-1)) / (2 * step);
};

// Copies of one sequence, each with targets and a fractional weight of its own.
const tokens = ids(9);
const ranks = [0.625, 0.25, 0.125, 0].map((weight) => ({ tokens, targets: ids(9), weights: new Float32Array(9).fill(weight) }));
const cases: (readonly [string, LossBatch])[] = [
  ...batches.map((batch) => [batch.loss, batch] as const),
  ['cross_entropy of several targets a token', { loss: 'cross_entropy', datums: ranks }],
];
describe.each(cases)('%s', (_, batch) => {
  const gradient = new Float32Array(weights.values.length);
  const result = lossPass(weights, batch, gradient, 'all');

  it('has the value and the log-probabilities of the float64 model', () => {
    expect(result.metrics['loss:sum']).toBeCloseTo(naiveLoss(weights, batch), 4);
    batch.datums.forEach(({ tokens, targets }, d) => {
      const wanted = naiveLogprobs(weights, tokens, targets);
      result.logprobs[d]?.forEach((logprob, row) => {
        expect(logprob).toBeCloseTo(wanted[row] as number, 5);
      });
    });
  });

  it.each(parameterTable(SHAPE).map((parameter) => [parameter.name, parameter] as const))('has the gradient of %s', (_name, parameter) => {
    const normal = normalStream(parameter.at);
    const inside = (i: number) => i >= parameter.at && i < parameter.at + parameter.rows * parameter.columns;
    const direction = Float64Array.from(weights.values, (_value, i) => (inside(i) ? normal() : 0));
    const measured = slope(
      (values) => naiveLoss({ shape: SHAPE, values }, batch),
      weights.values,
      (i) => direction[i] as number,
    );
    const computed = direction.reduce((sum, value, i) => sum + value * (gradient[i] as number), 0);
    expect(Math.abs(measured)).toBeGreaterThan(1e-3);
    expect(Math.abs(computed - measured) / Math.abs(measured)).toBeLessThan(1e-3);
  });
});

describe('a LoRA adapter', () => {
  const settings = { rank: 3, seed: 9, trainAttn: true, trainMlp: true };
  const { adapters, total } = adapterTable(SHAPE, settings);
  const values = initialAdapter(adapters, settings, total);
  const normal = normalStream(2);
  for (const { b, out } of adapters) for (let i = 0; i < out * settings.rank; i++) values[b + i] = 0.2 * normal();
  const batch = batches[0] as LossBatch;
  const twoPaths = (adapter: ArrayLike<number>): NaiveModel => ({
    ...weights,
    lora: {
      scale: 2,
      pair: (linear) => {
        const found = adapters.find(({ name }) => name === linear);
        if (!found) return null;
        const part = (at: number, length: number) => Array.from({ length }, (_, i) => adapter[at + i] as number);
        return { a: part(found.a, settings.rank * found.in), b: part(found.b, found.out * settings.rank), rank: settings.rank };
      },
    },
  });
  const merged = { ...weights, values: mergeAdapter(weights.values, adapters, settings.rank, values) };

  it('sits on all seven linears of every layer', () => {
    expect(adapters.map(({ name }) => name.split('.').slice(2).join('.'))).toEqual(
      [0, 1].flatMap((layer) =>
        [
          'self_attn.q_proj',
          'self_attn.k_proj',
          'self_attn.v_proj',
          'self_attn.o_proj',
          'mlp.gate_proj',
          'mlp.up_proj',
          'mlp.down_proj',
        ].map((part) => `${layer}.${part}`),
      ),
    );
  });

  it('merged into the weights computes what the adapter computes as a path of its own', () => {
    const { logprobs } = lossPass(merged, batch, null, 'linears');
    batch.datums.forEach(({ tokens, targets }, d) => {
      const wanted = naiveLogprobs(twoPaths(values), tokens, targets);
      logprobs[d]?.forEach((logprob, row) => {
        expect(logprob).toBeCloseTo(wanted[row] as number, 5);
      });
    });
  });

  it('has the gradient of its two paths', () => {
    const dense = new Float32Array(weights.values.length);
    lossPass(merged, batch, dense, 'linears');
    const gradient = projectGradient(dense, adapters, settings.rank, values);
    for (const { a, b, out, in: inWidth } of adapters) {
      for (const [at, length] of [
        [a, settings.rank * inWidth],
        [b, out * settings.rank],
      ] as const) {
        const direction = Float64Array.from(values, (_, i) => (i >= at && i < at + length ? normal() : 0));
        const measured = slope(
          (moved) => naiveLoss(twoPaths(moved), batch),
          values,
          (i) => direction[i] as number,
        );
        const computed = direction.reduce((sum, value, i) => sum + value * (gradient[i] as number), 0);
        expect(Math.abs(computed - measured)).toBeLessThan(1e-3 * Math.max(0.01, Math.abs(measured)));
      }
    }
  });
});

describe('gradients of several calls', () => {
  const batch = batches[0] as Extract<LossBatch, { loss: 'cross_entropy' }>;
  it('add up to the gradient of one call with all datums', () => {
    const together = new Float32Array(weights.values.length);
    lossPass(weights, batch, together, 'all');
    const apart = new Float32Array(weights.values.length);
    for (const datum of batch.datums) lossPass(weights, { loss: 'cross_entropy', datums: [datum] }, apart, 'all');
    apart.forEach((value, i) => {
      expect(value).toBeCloseTo(together[i] as number, 4);
    });
  });

  it('do not depend on how a batch falls into chunks', () => {
    const many: LossBatch = { loss: 'cross_entropy', datums: Array.from({ length: 60 }, () => batch.datums).flat() };
    const once = new Float32Array(weights.values.length);
    lossPass(weights, batch, once, 'all');
    const often = new Float32Array(weights.values.length);
    const { logprobs } = lossPass(weights, many, often, 'all');
    expect(logprobs.at(-1)).toEqual(lossPass(weights, batch, null, 'all').logprobs.at(-1));
    often.forEach((value, i) => {
      expect(value / 60).toBeCloseTo(once[i] as number, 4);
    });
  });
});

describe('a datum that cannot be scored is named', () => {
  const good = { tokens: Int32Array.of(1, 2), targets: Int32Array.of(2, 3), weights: Float32Array.of(1, 1) };
  it.each([
    ['no tokens', { tokens: new Int32Array(), targets: new Int32Array(), weights: new Float32Array() }, /datum 1: it has 0 tokens/],
    [
      'too many',
      { tokens: new Int32Array(25), targets: new Int32Array(25), weights: new Float32Array(25) },
      /datum 1: it has 25 tokens.*1 to 24/,
    ],
    ['a foreign id', { ...good, targets: Int32Array.of(2, 24) }, /datum 1: targets holds id 24.*0 to 23/],
    ['uneven lists', { ...good, weights: Float32Array.of(1) }, /datum 1: weights has 1 entries for 2 tokens/],
  ])('%s', (_, datum, message) => {
    expect(() => lossPass(weights, { loss: 'cross_entropy', datums: [good, datum] }, null, 'all')).toThrow(message);
  });
});
