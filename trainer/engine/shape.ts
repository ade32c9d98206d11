import type { ModelShape } from './types.ts';

/** The shape of both models of the quickstart: 115,008 parameters. */
export const TINY_SHAPE: ModelShape = { vocab: 128, width: 64, layers: 2, heads: 4, hidden: 192, context: 192 };

/** RoPE base and RMSNorm epsilon, as in Llama. */
export const ROPE_BASE = 10_000;
export const NORM_EPS = 1e-5;

const MAX_TOPK = 64;
/** How many of the likeliest tokens a prompt position can be asked for: 64, or all of a smaller vocabulary. */
export const topkLimit = (vocab: number): number => Math.min(MAX_TOPK, vocab);

export const LINEAR_NAMES = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;
export type LinearName = (typeof LINEAR_NAMES)[number];

/** One tensor of the flat parameter vector. A linear is [out, in], row-major, as in Hugging Face checkpoints. */
export type Parameter = {
  readonly name: string;
  readonly at: number;
  readonly rows: number;
  readonly columns: number;
  readonly isNorm: boolean;
};

/** Where a layer's tensors start. q, k, v are adjacent, and so are gate and up: each group is one matrix to the engine. */
export type LayerPlaces = {
  readonly attnNorm: number;
  readonly qkv: number;
  readonly o: number;
  readonly mlpNorm: number;
  readonly gateUp: number;
  readonly down: number;
};
export type Places = { readonly embed: number; readonly layers: readonly LayerPlaces[]; readonly norm: number; readonly total: number };

const linear = (shape: ModelShape, name: LinearName): { rows: number; columns: number } => {
  if (name === 'gate_proj' || name === 'up_proj') return { rows: shape.hidden, columns: shape.width };
  if (name === 'down_proj') return { rows: shape.width, columns: shape.hidden };
  return { rows: shape.width, columns: shape.width };
};

/** All tensors in the order in which the flat vector holds them. */
export const parameterTable = (shape: ModelShape): readonly Parameter[] => {
  const table: Parameter[] = [];
  let at = 0;
  const push = (name: string, rows: number, columns: number, isNorm: boolean) => {
    table.push({ name, at, rows, columns, isNorm });
    at += rows * columns;
  };
  push('model.embed_tokens.weight', shape.vocab, shape.width, false);
  for (let layer = 0; layer < shape.layers; layer++) {
    const pushLinear = (block: string, name: LinearName) => {
      const { rows, columns } = linear(shape, name);
      push(`model.layers.${layer}.${block}.${name}.weight`, rows, columns, false);
    };
    push(`model.layers.${layer}.input_layernorm.weight`, 1, shape.width, true);
    for (const name of LINEAR_NAMES.slice(0, 4)) pushLinear('self_attn', name);
    push(`model.layers.${layer}.post_attention_layernorm.weight`, 1, shape.width, true);
    for (const name of LINEAR_NAMES.slice(4)) pushLinear('mlp', name);
  }
  push('model.norm.weight', 1, shape.width, true);
  return table;
};

export const placesOf = (shape: ModelShape): Places => {
  const table = parameterTable(shape);
  const place = (name: string): number => {
    const found = table.find((parameter) => parameter.name === name);
    if (!found) throw new Error(`engine: no parameter ${name}`);
    return found.at;
  };
  const last = table[table.length - 1];
  return {
    embed: place('model.embed_tokens.weight'),
    layers: Array.from({ length: shape.layers }, (_, layer) => ({
      attnNorm: place(`model.layers.${layer}.input_layernorm.weight`),
      qkv: place(`model.layers.${layer}.self_attn.q_proj.weight`),
      o: place(`model.layers.${layer}.self_attn.o_proj.weight`),
      mlpNorm: place(`model.layers.${layer}.post_attention_layernorm.weight`),
      gateUp: place(`model.layers.${layer}.mlp.gate_proj.weight`),
      down: place(`model.layers.${layer}.mlp.down_proj.weight`),
    })),
    norm: place('model.norm.weight'),
    total: last ? last.at + last.rows * last.columns : 0,
  };
};
