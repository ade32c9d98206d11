import { fromBinary } from '@bufbuild/protobuf';
import { BinaryReader } from '@bufbuild/protobuf/wire';
import type { Datum, ForwardBackwardRequest, Tensor } from '../../services/tinker/wire/tinker_public_pb.ts';
import { ForwardBackwardRequestSchema } from '../../services/tinker/wire/tinker_public_pb.ts';
import type { LossBatch, PolicyRows, TokenRows, WeightedRows } from '../engine/types.ts';
import { UserError } from './failures.ts';
import { floatTable, intTable, modelInput } from './loss-tensors.ts';

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

/** Targets of one dimension, or several a row with a weight each. */
function weightedRows(datum: Datum, at: string, limits: SequenceLimits): WeightedRows {
  const { columns, ...rows } = tokenRows(datum, at, limits, limits.vocab);
  allowKeys(`${at}.loss_fn_inputs`, Object.keys(datum.lossFnInputs), ['target_tokens', 'weights']);
  // Absent weights mean 1 everywhere, as the official client documents.
  const weights =
    datum.lossFnInputs.weights === undefined
      ? new Float32Array(rows.targets.length).fill(1)
      : floats(datum, 'weights', at, rows.tokens.length, columns);
  return columns === undefined ? { ...rows, weights } : { ...rows, weights, columns };
}

function policyRows(datum: Datum, at: string, limits: SequenceLimits): PolicyRows {
  const { columns, ...rows } = tokenRows(datum, at, limits, 1);
  if (columns !== undefined) throw new UserError(`${at}.loss_fn_inputs.target_tokens: must have one dimension for this loss`);
  allowKeys(`${at}.loss_fn_inputs`, Object.keys(datum.lossFnInputs), ['target_tokens', 'logprobs', 'advantages']);
  const [logprobs, advantages] = ['logprobs', 'advantages'].map((key) => floats(datum, key, at, rows.tokens.length, undefined));
  return { ...rows, logprobs: logprobs as Float32Array, advantages: advantages as Float32Array };
}

function tokenRows(
  datum: Datum,
  at: string,
  limits: SequenceLimits,
  maxColumns: number,
): TokenRows & { readonly columns: number | undefined } {
  const tokens = modelInput(datum, at);
  if (tokens.length === 0) throw new UserError(`${at}.model_input: is empty`);
  if (tokens.length > limits.context) {
    throw new UserError(`${at}.model_input: ${tokens.length} tokens, but the model's context is ${limits.context}`);
  }
  const field = `${at}.loss_fn_inputs.target_tokens`;
  const { values: targets, rows, columns } = intTable(required(datum, 'target_tokens', at), field, maxColumns);
  sameLength(field, rows, tokens.length);
  checkVocabulary(tokens, limits.vocab, `${at}.model_input`);
  checkVocabulary(targets, limits.vocab, field);
  return { tokens, targets, columns };
}

function floats(datum: Datum, key: string, at: string, length: number, columns: number | undefined): Float32Array {
  const field = `${at}.loss_fn_inputs.${key}`;
  const table = floatTable(required(datum, key, at), field, columns ?? 1);
  sameLength(field, table.rows, length);
  if (table.columns !== columns) {
    throw new UserError(`${field}: must have the shape of target_tokens, [${length}${columns === undefined ? '' : `, ${columns}`}]`);
  }
  return table.values;
}

function required(datum: Datum, key: string, at: string): Tensor {
  const tensor = datum.lossFnInputs[key];
  if (tensor === undefined) throw new UserError(`${at}.loss_fn_inputs: '${key}' is missing for this loss`);
  return tensor;
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
