import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { Datum, ForwardBackwardRequest, Tensor } from '../../services/tinker/wire/tinker_public_pb.ts';
import { DType, ForwardBackwardRequestSchema } from '../../services/tinker/wire/tinker_public_pb.ts';
import type { LossBatch, PolicyRows, TokenRows, WeightedRows } from '../engine/types.ts';
import { UserError } from './failures.ts';

export type ForwardBackwardCall = { readonly batch: LossBatch; readonly forwardOnly: boolean };

/** The limits a datum must keep to. */
export type SequenceLimits = { readonly vocab: number; readonly context: number };

/** Who a forward_backward body is for, without decoding its data. Absent fields read as '' and 0, as proto3 says. */
export function readAddress(body: Uint8Array): { modelId: string; seqId: number; forwardOnly: boolean } {
  const address = { modelId: '', seqId: 0, forwardOnly: false };
  const reader = new BinaryReader(body);
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    if (field === 1) address.modelId = reader.string();
    else if (field === 2) address.seqId = reader.int32();
    else if (field === 6) address.forwardOnly = reader.bool();
    else reader.skip(wireType, field);
  }
  return address;
}

/** Decodes and checks a forward_backward body. Throws UserError naming the datum and the field. */
export function decodeForwardBackward(body: Uint8Array, limits: SequenceLimits): ForwardBackwardCall {
  const request = fromBinary(ForwardBackwardRequestSchema, body);
  if (request.data.length === 0) throw new UserError('data: is empty; send at least one datum');
  return { batch: lossBatch(request, limits), forwardOnly: request.forwardOnly };
}

function lossBatch(request: ForwardBackwardRequest, limits: SequenceLimits): LossBatch {
  const config = lossConfig(request);
  switch (request.lossFn) {
    case 'cross_entropy':
      allowKeys('loss_fn_config', Object.keys(config), []);
      return { loss: 'cross_entropy', datums: request.data.map((datum, i) => weightedRows(datum, `data[${i}]`, limits)) };
    case 'importance_sampling':
      allowKeys('loss_fn_config', Object.keys(config), []);
      return { loss: 'importance_sampling', datums: request.data.map((datum, i) => policyRows(datum, `data[${i}]`, limits)) };
    case 'ppo':
      return { loss: 'ppo', ...clipping(config), datums: request.data.map((datum, i) => policyRows(datum, `data[${i}]`, limits)) };
    default:
      throw new UserError(`loss_fn: '${request.lossFn}' is not served here; use cross_entropy, importance_sampling or ppo`);
  }
}

/** The protocol's defaults where a threshold is not given (reference: loss table of the Tinker wire protocol). */
function clipping(config: Readonly<Record<string, number>>): { clipLow: number; clipHigh: number } {
  allowKeys('loss_fn_config', Object.keys(config), ['clip_low_threshold', 'clip_high_threshold']);
  const { clip_low_threshold: clipLow = 0.8, clip_high_threshold: clipHigh = 1.2 } = config;
  if (clipLow >= 0 && clipLow <= clipHigh) return { clipLow, clipHigh };
  throw new UserError(
    `loss_fn_config: clip_low_threshold ${clipLow} and clip_high_threshold ${clipHigh} must be 0 or more, the low one first`,
  );
}

function lossConfig(request: ForwardBackwardRequest): Record<string, number> {
  const config: Record<string, number> = { ...request.lossFnConfig };
  for (const [key, { value }] of Object.entries(request.lossFnConfigV2)) {
    if (value.case !== 'number') throw new UserError(`loss_fn_config.${key}: must be a number`);
    config[key] = value.value;
  }
  return config;
}

function weightedRows(datum: Datum, at: string, limits: SequenceLimits): WeightedRows {
  const rows = tokenRows(datum, at, limits);
  allowKeys(`${at}.loss_fn_inputs`, Object.keys(datum.lossFnInputs), ['target_tokens', 'weights']);
  // Absent weights mean 1 everywhere, as the official client documents.
  const weights = datum.lossFnInputs.weights;
  return { ...rows, weights: weights === undefined ? new Float32Array(rows.tokens.length).fill(1) : floats(datum, 'weights', at, rows) };
}

function policyRows(datum: Datum, at: string, limits: SequenceLimits): PolicyRows {
  const rows = tokenRows(datum, at, limits);
  allowKeys(`${at}.loss_fn_inputs`, Object.keys(datum.lossFnInputs), ['target_tokens', 'logprobs', 'advantages']);
  return { ...rows, logprobs: floats(datum, 'logprobs', at, rows), advantages: floats(datum, 'advantages', at, rows) };
}

function tokenRows(datum: Datum, at: string, limits: SequenceLimits): TokenRows {
  const tokens = modelInput(datum, at);
  if (tokens.length === 0) throw new UserError(`${at}.model_input: is empty`);
  if (tokens.length > limits.context) {
    throw new UserError(`${at}.model_input: ${tokens.length} tokens, but the model's context is ${limits.context}`);
  }
  const field = `${at}.loss_fn_inputs.target_tokens`;
  const targets = targetTokens(required(datum, 'target_tokens', at), field);
  sameLength(field, targets.length, tokens.length);
  checkVocabulary(tokens, limits.vocab, `${at}.model_input`);
  checkVocabulary(targets, limits.vocab, field);
  return { tokens, targets };
}

function modelInput(datum: Datum, at: string): Int32Array {
  const parts = datum.modelInput.map(({ chunk }, i) => {
    if (chunk.case !== 'encodedText') throw new UserError(`${at}.model_input[${i}]: only text chunks are served here`);
    return int32Values(chunk.value.tokens, `${at}.model_input[${i}].tokens`);
  });
  if (parts.length === 1) return parts[0] ?? new Int32Array();
  return Int32Array.from(parts.flatMap((part) => [...part]));
}

function targetTokens(tensor: Tensor, field: string): Int32Array {
  const bytes = denseVector(tensor, field);
  if (tensor.dtype === DType.INT32) return int32Values(bytes, field);
  if (tensor.dtype !== DType.INT64) throw new UserError(`${field}: must be int64, got dtype ${tensor.dtype}`);
  if (bytes.length % 8 !== 0) throw new UserError(`${field}: ${bytes.length} bytes are not a whole number of int64 values`);
  return Int32Array.from(new BigInt64Array(bytes.slice().buffer), (value) => {
    if (value !== BigInt.asIntN(32, value)) throw new UserError(`${field}: token ${value} does not fit 32 bits`);
    return Number(value);
  });
}

function floats(datum: Datum, key: string, at: string, rows: TokenRows): Float32Array {
  const field = `${at}.loss_fn_inputs.${key}`;
  const tensor = required(datum, key, at);
  const bytes = denseVector(tensor, field);
  if (tensor.dtype !== DType.FLOAT32) throw new UserError(`${field}: must be float32, got dtype ${tensor.dtype}`);
  if (bytes.length % 4 !== 0) throw new UserError(`${field}: ${bytes.length} bytes are not a whole number of float32 values`);
  const values = new Float32Array(bytes.slice().buffer);
  sameLength(field, values.length, rows.tokens.length);
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw new UserError(`${field}[${bad}]: ${values[bad]} is not a finite number`);
  return values;
}

function required(datum: Datum, key: string, at: string): Tensor {
  const tensor = datum.lossFnInputs[key];
  if (tensor === undefined) throw new UserError(`${at}.loss_fn_inputs: '${key}' is missing for this loss`);
  return tensor;
}

function denseVector(tensor: Tensor, field: string): Uint8Array {
  if (tensor.data.case !== 'dense' || tensor.shape.length > 1) throw new UserError(`${field}: must be a dense tensor of one dimension`);
  return tensor.data.value;
}

function int32Values(bytes: Uint8Array, field: string): Int32Array {
  if (bytes.length % 4 !== 0) throw new UserError(`${field}: ${bytes.length} bytes are not a whole number of int32 values`);
  return new Int32Array(bytes.slice().buffer);
}

function sameLength(field: string, got: number, expected: number): void {
  if (got !== expected) throw new UserError(`${field}: ${got} values, but model_input has ${expected} tokens; they must be equally long`);
}

function checkVocabulary(tokens: Int32Array, vocab: number, field: string): void {
  const bad = tokens.findIndex((token) => token < 0 || token >= vocab);
  if (bad >= 0) throw new UserError(`${field}[${bad}]: token ${tokens[bad]} is outside the vocabulary (0 to ${vocab - 1})`);
}

function allowKeys(field: string, keys: readonly string[], allowed: readonly string[]): void {
  const unknown = keys.find((key) => !allowed.includes(key));
  if (unknown !== undefined) {
    throw new UserError(`${field}: unknown key '${unknown}' for this loss; allowed: ${allowed.join(', ') || 'none'}`);
  }
}
