import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { combineOutputs } from '../combine.ts';
import {
  type Chunk,
  decodeForwardBackwardOutput,
  decodeForwardBackwardRequest,
  decodeSampleResponse,
  encodeForwardBackwardRequest,
  estimatedBytes,
  type LossFnConfig,
  type TensorValue,
  type TopkTable,
  type TrainingDatum,
  topkRow,
} from './index.ts';

type JsonNumber = number | string;
type JsonTensor = { dtype: string; shape: number[]; data: JsonNumber[]; sparse_crow_indices?: number[]; sparse_col_indices?: number[] };
type JsonChunk = { type: string; tokens?: number[]; data_base64?: string; format?: string; expected_tokens?: number; dmel_base64?: string };
type JsonRequest = {
  model_id: string;
  seq_id: number;
  forward_only: boolean;
  loss_fn: string;
  loss_fn_config_v2: Record<string, { number?: number; text?: string }>;
  data: { model_input: JsonChunk[]; loss_fn_inputs: Record<string, JsonTensor> }[];
};

function cases<Case>(file: string): Case[] {
  const text = readFileSync(new URL(`../../../test/fixtures/tinker/${file}`, import.meta.url), 'utf8');
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Case);
}

function bytes(base64 = ''): Uint8Array {
  return new Uint8Array(Buffer.from(base64, 'base64'));
}

function chunk(json: JsonChunk): Chunk {
  if (json.type === 'encoded_text') return { type: 'encoded_text', tokens: Int32Array.from(json.tokens ?? []) };
  if (json.type === 'dmel') return { type: 'dmel', dmel: bytes(json.dmel_base64) };
  const expected = json.expected_tokens === undefined ? {} : { expectedTokens: json.expected_tokens };
  return { type: 'image', data: bytes(json.data_base64), format: json.format ?? '', ...expected };
}

function tensor(json: JsonTensor): TensorValue {
  const wide = json.data.some((value) => typeof value === 'string' && /^-?\d{11,}$/.test(value));
  const values =
    json.dtype === 'float32'
      ? Float32Array.from(json.data, Number)
      : wide
        ? BigInt64Array.from(json.data, (value) => BigInt(value))
        : Int32Array.from(json.data, Number);
  const sparse =
    json.sparse_crow_indices === undefined
      ? {}
      : { sparse: { crowIndices: Int32Array.from(json.sparse_crow_indices), colIndices: Int32Array.from(json.sparse_col_indices ?? []) } };
  return { values, shape: json.shape, ...sparse };
}

function tensors(json: Record<string, JsonTensor>): Record<string, TensorValue> {
  return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, tensor(value)]));
}

function request(json: JsonRequest) {
  const config: LossFnConfig = Object.fromEntries(
    Object.entries(json.loss_fn_config_v2).map(([key, value]) => [key, value.number ?? value.text ?? '']),
  );
  const datums: TrainingDatum[] = json.data.map((datum) => ({
    modelInput: datum.model_input.map(chunk),
    lossFnInputs: tensors(datum.loss_fn_inputs),
  }));
  return {
    modelId: json.model_id,
    seqId: json.seq_id,
    datums,
    lossFn: json.loss_fn,
    lossFnConfig: config,
    forwardOnly: json.forward_only,
  };
}

describe('forward_backward request', () => {
  type Case = { case: string; expected: JsonRequest; canonical_base64: string; sdk_body_base64: string; estimated_bytes: number };
  test.each(cases<Case>('fwdbwd_encode.jsonl'))('$case', (vector) => {
    const ours = request(vector.expected);
    expect(Buffer.from(encodeForwardBackwardRequest(ours)).toString('base64')).toBe(vector.canonical_base64);
    expect(decodeForwardBackwardRequest(Buffer.from(vector.sdk_body_base64, 'base64'))).toEqual(
      decodeForwardBackwardRequest(encodeForwardBackwardRequest(ours)),
    );
    expect(ours.datums.reduce((sum, datum) => sum + estimatedBytes(datum), 0)).toBe(vector.estimated_bytes);
  });
});

describe('forward_backward output', () => {
  type Case = {
    case: string;
    body_base64: string;
    expected: { loss_fn_output_type: string; metrics: Record<string, JsonNumber>; loss_fn_outputs: Record<string, JsonTensor>[] };
  };
  test.each(cases<Case>('fwdbwd_response_decode.jsonl'))('$case', ({ body_base64, expected }) => {
    // The recorded client joins chunks even when there is one: a slack of one chunk is 0.
    expect(combineOutputs([decodeForwardBackwardOutput(Buffer.from(body_base64, 'base64'))])).toEqual({
      lossFnOutputType: expected.loss_fn_output_type,
      metrics: Object.fromEntries(Object.entries(expected.metrics).map(([name, value]) => [name, Number(value)])),
      lossFnOutputs: expected.loss_fn_outputs.map(tensors),
    });
  });
});

describe('sample response', () => {
  type Case = {
    case: string;
    body_base64: string;
    expected: {
      sequences: { tokens: number[]; logprobs: number[] | null; stop_reason: string }[];
      prompt_logprobs: (number | null)[] | null;
      topk_prompt_logprobs: ([number, number][] | null)[] | null;
      target_prompt_logprobs: JsonTensor | null;
      prompt_alt_tokens: { tokens: JsonTensor; logprobs: JsonTensor } | null;
      prompt_cache_hit_tokens: number;
    };
  };
  const rows = (table: TopkTable) =>
    Array.from({ length: table.length }, (_, i) => topkRow(table, i).map(({ tokenId, logprob }) => [tokenId, logprob]));

  test.each(cases<Case>('sample_response_decode.jsonl'))('$case', ({ body_base64, expected }) => {
    const decoded = decodeSampleResponse(Buffer.from(body_base64, 'base64'));
    expect(decoded.sequences).toEqual(
      expected.sequences.map(({ tokens, logprobs, stop_reason }) => ({
        tokens: Int32Array.from(tokens),
        logprobs: logprobs === null ? null : Float32Array.from(logprobs),
        stopReason: stop_reason,
        topk: null,
      })),
    );
    expect(decoded.promptLogprobs).toEqual(
      expected.prompt_logprobs && Float32Array.from(expected.prompt_logprobs, (value) => value ?? Number.NaN),
    );
    expect(decoded.topkPromptLogprobs && rows(decoded.topkPromptLogprobs)).toEqual(
      expected.topk_prompt_logprobs?.map((row) => row ?? []) ?? null,
    );
    expect(decoded.targetPromptLogprobs).toEqual(expected.target_prompt_logprobs && tensor(expected.target_prompt_logprobs));
    const alt = expected.prompt_alt_tokens;
    expect(decoded.promptAltTokens).toEqual(alt && { tokens: tensor(alt.tokens), logprobs: tensor(alt.logprobs) });
    expect(decoded.promptCacheHitTokens).toBe(expected.prompt_cache_hit_tokens);
  });
});
