import { NORM_EPS, parameterTable, ROPE_BASE } from './shape.ts';
import type { ModelShape } from './types.ts';

/**
 * The same model once more, for tests: float64, no batching, no cache, no tricks. A linear can carry a LoRA pair that is applied
 * as its own path, x·Wᵀ + scale·(x·Aᵀ)·Bᵀ.
 */
export type NaiveModel = {
  readonly shape: ModelShape;
  readonly values: ArrayLike<number>;
  readonly lora?: {
    readonly scale: number;
    readonly pair: (linear: string) => { a: ArrayLike<number>; b: ArrayLike<number>; rank: number } | null;
  };
};
type Rows = number[][];

/** ln p(targets[i] | tokens[0..i]) of one sequence. */
export const naiveLogprobs = (model: NaiveModel, tokens: ArrayLike<number>, targets: ArrayLike<number>): number[] =>
  naiveDistributions(model, tokens).map((row, i) => row[targets[i] as number] as number);

/** ln p(· | tokens[0..i]) over the whole vocabulary. */
export const naiveDistributions = (model: NaiveModel, tokens: ArrayLike<number>): number[][] =>
  naiveLogits(model, tokens).map((logits) => {
    const max = Math.max(...logits);
    const normalizer = max + Math.log(logits.reduce((sum, logit) => sum + Math.exp(logit - max), 0));
    return logits.map((logit) => logit - normalizer);
  });

const naiveLogits = (model: NaiveModel, tokens: ArrayLike<number>): Rows => {
  const { shape } = model;
  const embedding = rowsOf(model, 'model.embed_tokens.weight');
  let residual = Array.from(tokens, (token) => [...(embedding[token] as number[])]);
  for (let layer = 0; layer < shape.layers; layer++) {
    const name = (part: string) => `model.layers.${layer}.${part}`;
    const linear = (x: Rows, part: string) => applyLinear(model, x, name(part));
    const normed = norm(residual, rowsOf(model, name('input_layernorm.weight')));
    const [q, k, v] = ['q_proj', 'k_proj', 'v_proj'].map((part) => linear(normed, `self_attn.${part}`)) as [Rows, Rows, Rows];
    residual = plus(residual, linear(attention(shape, rotated(shape, q), rotated(shape, k), v), 'self_attn.o_proj'));
    const middle = norm(residual, rowsOf(model, name('post_attention_layernorm.weight')));
    const gate = linear(middle, 'mlp.gate_proj');
    const up = linear(middle, 'mlp.up_proj');
    const activated = gate.map((row, i) => row.map((g, j) => (g / (1 + Math.exp(-g))) * (up[i]?.[j] as number)));
    residual = plus(residual, linear(activated, 'mlp.down_proj'));
  }
  return product(norm(residual, rowsOf(model, 'model.norm.weight')), embedding);
};

const rowsOf = ({ shape, values }: NaiveModel, name: string): Rows => {
  const place = parameterTable(shape).find((parameter) => parameter.name === name);
  if (!place) throw new Error(`no parameter ${name}`);
  const { at, rows, columns } = place;
  return Array.from({ length: rows }, (_, r) => Array.from({ length: columns }, (_, c) => values[at + r * columns + c] as number));
};

const dot = (x: readonly number[], y: readonly number[]): number => x.reduce((sum, value, i) => sum + value * (y[i] as number), 0);
/** x · weightsᵀ. */
const product = (x: Rows, weights: Rows): Rows => x.map((row) => weights.map((weight) => dot(row, weight)));
const plus = (x: Rows, y: Rows): Rows => x.map((row, i) => row.map((value, j) => value + (y[i]?.[j] as number)));

const applyLinear = (model: NaiveModel, x: Rows, name: string): Rows => {
  const weights = rowsOf(model, `${name}.weight`);
  const pair = model.lora?.pair(name);
  const straight = product(x, weights);
  if (!model.lora || !pair) return straight;
  const { scale } = model.lora;
  const cut = (values: ArrayLike<number>, width: number): Rows =>
    Array.from({ length: values.length / width }, (_, r) => Array.from({ length: width }, (_, c) => values[r * width + c] as number));
  const narrow = product(product(x, cut(pair.a, (weights[0] as number[]).length)), cut(pair.b, pair.rank));
  return plus(
    straight,
    narrow.map((row) => row.map((value) => value * scale)),
  );
};

const norm = (x: Rows, gain: Rows): Rows =>
  x.map((row) => {
    const rms = Math.sqrt(dot(row, row) / row.length + NORM_EPS);
    return row.map((value, i) => (value / rms) * (gain[0]?.[i] as number));
  });

const rotated = ({ width, heads }: ModelShape, x: Rows): Rows => {
  const half = width / heads / 2;
  return x.map((row, position) =>
    row.map((value, i) => {
      const inHead = i % (2 * half);
      const angle = position * ROPE_BASE ** (-(inHead % half) / half);
      const partner = inHead < half ? -(row[i + half] as number) : (row[i - half] as number);
      return value * Math.cos(angle) + partner * Math.sin(angle);
    }),
  );
};

const attention = ({ width, heads }: ModelShape, q: Rows, k: Rows, v: Rows): Rows => {
  const size = width / heads;
  return q.map((query, row) =>
    query.map((_, column) => {
      const from = Math.floor(column / size) * size;
      const scores = k.slice(0, row + 1).map((key) => dot(query.slice(from, from + size), key.slice(from, from + size)) / Math.sqrt(size));
      const max = Math.max(...scores);
      const parts = scores.map((score) => Math.exp(score - max));
      return parts.reduce((sum, part, i) => sum + part * (v[i]?.[column] as number), 0) / parts.reduce((sum, part) => sum + part, 0);
    }),
  );
};
