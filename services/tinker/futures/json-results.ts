import { z } from 'zod';
import {
  type ForwardBackwardOutput,
  requireCount,
  type SampleResponse,
  type TensorValue,
  TOPK_MASK,
  type TopkTable,
} from '../wire/index.ts';

/** Results of older servers (JSON) in the form of the newer ones (protobuf). A number that JSON has not comes as null or as its name. */

type JsonNumber = number | string | null;

const NAMES: ReadonlySet<unknown> = new Set(['NaN', 'Infinity', '-Infinity']);
const isJsonNumber = (value: unknown): value is JsonNumber => typeof value === 'number' || value === null || NAMES.has(value);

export const numberSchema = z.custom<JsonNumber>(isJsonNumber, 'no number');
/** One check over the whole list: a schema per element would cost more than the parsing. */
const numbersSchema = z.custom<readonly JsonNumber[]>((value) => Array.isArray(value) && value.every(isJsonNumber), 'no list of numbers');
/** Integers beyond 2^53 come as strings. */
const integersSchema = z.custom<readonly (number | string)[]>(
  (value) => Array.isArray(value) && value.every((item) => Number.isInteger(item) || (typeof item === 'string' && /^-?\d+$/.test(item))),
  'no list of integers',
);

const tensorSchema = z.union([
  z.object({ data: integersSchema, dtype: z.literal('int64'), shape: z.array(z.number()).nullish() }),
  z.object({
    data: numbersSchema,
    dtype: z
      .string()
      .refine((dtype) => dtype !== 'int64')
      .optional(),
    shape: z.array(z.number()).nullish(),
  }),
]);

export const jsonForwardBackwardSchema = z.object({
  loss_fn_output_type: z.string().default(''),
  loss_fn_outputs: z.array(z.record(z.string(), tensorSchema)),
  metrics: z.record(z.string(), numberSchema).nullish(),
});

const tokensSchema = z.custom<readonly number[]>((value) => Array.isArray(value) && value.every(Number.isInteger), 'no list of token ids');
const topkSchema = z.array(z.array(z.tuple([z.number(), numberSchema])).nullable());

export const jsonSampleSchema = z.object({
  sequences: z.array(
    z.object({
      tokens: tokensSchema,
      logprobs: numbersSchema.nullish(),
      stop_reason: z.enum(['stop', 'length']),
      topk_logprobs: topkSchema.nullish(),
    }),
  ),
  prompt_logprobs: numbersSchema.nullish(),
  topk_prompt_logprobs: topkSchema.nullish(),
  prompt_cache_hit_tokens: z.number().int().nullish(),
});

export function fromJsonForwardBackward(json: z.infer<typeof jsonForwardBackwardSchema>): ForwardBackwardOutput {
  return {
    lossFnOutputType: json.loss_fn_output_type,
    lossFnOutputs: json.loss_fn_outputs.map((record) => mapValues(record, tensorValue)),
    metrics: mapValues(json.metrics ?? {}, toNumber),
  };
}

export function fromJsonSample(json: z.infer<typeof jsonSampleSchema>): SampleResponse {
  return {
    sequences: json.sequences.map(({ tokens, logprobs, stop_reason, topk_logprobs }) => ({
      tokens: Int32Array.from(tokens, asTokenId),
      logprobs: logprobs ? floats(logprobs) : null,
      stopReason: stop_reason,
      topk: topk_logprobs ? topkTable(topk_logprobs) : null,
    })),
    promptLogprobs: json.prompt_logprobs ? floats(json.prompt_logprobs) : null,
    topkPromptLogprobs: json.topk_prompt_logprobs ? topkTable(json.topk_prompt_logprobs) : null,
    promptCacheHitTokens: json.prompt_cache_hit_tokens ?? 0,
    targetPromptLogprobs: null,
    promptAltTokens: null,
  };
}

/** As in protobuf, a tensor without a shape is 1-D. @throws RangeError when values and shape do not fit together */
function tensorValue({ data, dtype, shape }: z.infer<typeof tensorSchema>): TensorValue {
  const values = dtype === 'int64' ? integers(data) : floats(data);
  if (!shape || shape.length === 0) return { values, shape: [values.length] };
  requireCount(shape, values.length);
  return { values, shape };
}

/** @throws RangeError when it does not fit into the arrays that hold token ids: it would become another one */
function asTokenId(id: number): number {
  if (id === Math.trunc(id) && id >= -(2 ** 31) && id < 2 ** 31) return id;
  throw new RangeError(`the token id ${id} is no int32`);
}

function integers(data: readonly JsonNumber[]): Int32Array | BigInt64Array {
  const narrow = Int32Array.from(data, Number);
  return narrow.every((value, i) => value === data[i]) ? narrow : BigInt64Array.from(data, (value) => BigInt(value ?? 0));
}

function floats(data: readonly JsonNumber[]): Float32Array {
  return Float32Array.from(data, toNumber);
}

export function toNumber(value: JsonNumber): number {
  return value === null ? Number.NaN : Number(value);
}

function topkTable(rows: z.infer<typeof topkSchema>): TopkTable {
  const k = Math.max(0, ...rows.map((row) => row?.length ?? 0));
  const table = {
    k,
    length: rows.length,
    tokenIds: new Int32Array(k * rows.length),
    logprobs: new Float32Array(k * rows.length).fill(TOPK_MASK),
  };
  for (const [position, row] of rows.entries()) {
    for (const [rank, [id, logprob]] of (row ?? []).entries()) {
      table.tokenIds[position * k + rank] = asTokenId(id);
      table.logprobs[position * k + rank] = toNumber(logprob);
    }
  }
  return table;
}

export function mapValues<From, To>(record: Readonly<Record<string, From>>, change: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, change(value)]));
}
