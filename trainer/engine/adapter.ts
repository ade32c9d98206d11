import { uniformStream } from './random.ts';
import { LINEAR_NAMES, parameterTable } from './shape.ts';
import type { LoraSettings, ModelShape } from './types.ts';

/** One adapted linear: A [rank, in] and B [out, rank] in the adapter's flat vector, W [out, in] in the model's. */
export type Adapter = {
  readonly name: string;
  readonly dense: number;
  readonly out: number;
  readonly in: number;
  readonly a: number;
  readonly b: number;
};

/** alpha / rank with alpha = 2·rank. */
const LORA_SCALE = 2;

const ATTENTION = new Set<string>(LINEAR_NAMES.slice(0, 4));

/** The adapted linears of a model and the length of the adapter's vector. */
export const adapterTable = (shape: ModelShape, { rank, trainAttn, trainMlp }: LoraSettings): { adapters: Adapter[]; total: number } => {
  const adapters: Adapter[] = [];
  let total = 0;
  for (const { name, at, rows, columns } of parameterTable(shape)) {
    const linear = LINEAR_NAMES.find((candidate) => name.includes(`.${candidate}.`));
    if (!linear || !(ATTENTION.has(linear) ? trainAttn : trainMlp)) continue;
    const b = total + rank * columns;
    adapters.push({ name: name.replace(/\.weight$/, ''), dense: at, out: rows, in: columns, a: total, b });
    total = b + rows * rank;
  }
  return { adapters, total };
};

/** A uniform in ±1/√in from the seed, B 0. */
export const initialAdapter = (adapters: readonly Adapter[], { rank, seed }: LoraSettings, total: number): Float32Array => {
  const uniform = uniformStream(seed);
  const values = new Float32Array(total);
  for (const adapter of adapters) {
    const bound = 1 / Math.sqrt(adapter.in);
    for (let i = 0; i < rank * adapter.in; i++) values[adapter.a + i] = (2 * uniform() - 1) * bound;
  }
  return values;
};

/** Where A and B of each linear lie, under PEFT's tensor names. */
export const tensorPlaces = (adapters: readonly Adapter[], rank: number): { name: string; at: number; dims: readonly [number, number] }[] =>
  adapters.flatMap((adapter) => [
    { name: `base_model.model.${adapter.name}.lora_A.weight`, at: adapter.a, dims: [rank, adapter.in] as const },
    { name: `base_model.model.${adapter.name}.lora_B.weight`, at: adapter.b, dims: [adapter.out, rank] as const },
  ]);

/** base + 2·B·A as a new vector. */
export const mergeAdapter = (base: Float32Array, adapters: readonly Adapter[], rank: number, values: Float32Array): Float32Array => {
  const dense = base.slice();
  for (const adapter of adapters) {
    for (let out = 0; out < adapter.out; out++) {
      const row = adapter.dense + out * adapter.in;
      for (let r = 0; r < rank; r++) {
        const factor = LORA_SCALE * (values[adapter.b + out * rank + r] as number);
        const a = adapter.a + r * adapter.in;
        for (let i = 0; i < adapter.in; i++) dense[row + i] = (dense[row + i] as number) + factor * (values[a + i] as number);
      }
    }
  }
  return dense;
};

/** The adapter's gradient from the merged model's: dA = 2·Bᵀ·dW, dB = 2·dW·Aᵀ. */
export const projectGradient = (dense: Float32Array, adapters: readonly Adapter[], rank: number, values: Float32Array): Float32Array => {
  const gradient = new Float32Array(values.length);
  for (const adapter of adapters) {
    for (let out = 0; out < adapter.out; out++) {
      const row = adapter.dense + out * adapter.in;
      for (let r = 0; r < rank; r++) {
        const a = adapter.a + r * adapter.in;
        const b = adapter.b + out * rank + r;
        const factor = LORA_SCALE * (values[b] as number);
        let dot = 0;
        for (let i = 0; i < adapter.in; i++) {
          const dW = dense[row + i] as number;
          dot += dW * (values[a + i] as number);
          gradient[a + i] = (gradient[a + i] as number) + factor * dW;
        }
        gradient[b] = LORA_SCALE * dot;
      }
    }
  }
  return gradient;
};
