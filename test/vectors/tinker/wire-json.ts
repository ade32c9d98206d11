import { fromBinary } from '@bufbuild/protobuf';
import type { Chunk, ForwardBackwardRequest, ProvenanceSpan, TensorValue, TrainingDatum } from '../../../services/tinker/wire/index.ts';
import { fromWireTensor } from '../../../services/tinker/wire/tensor-values.ts';
import {
  DType,
  ForwardBackwardRequestSchema,
  type ProvenanceSpan as WireSpan,
  type Tensor as WireTensor,
} from '../../../services/tinker/wire/tinker_public_pb.ts';

/** The recorder's JSON of requests, in both directions: renamed and reshaped, with its spelling of what JSON has no number for. */

export type JsonNumber = number | string | null;
export type JsonTensor = {
  readonly dtype: string;
  readonly shape?: readonly number[] | null;
  readonly data: readonly JsonNumber[];
  readonly sparse_crow_indices?: readonly number[] | null;
  readonly sparse_col_indices?: readonly number[] | null;
};
type JsonChunk = {
  readonly type: string;
  readonly tokens?: readonly number[];
  readonly data_base64?: string;
  readonly format?: string;
  readonly expected_tokens?: number | null;
  readonly dmel_base64?: string;
};
type JsonDatum = {
  readonly model_input: readonly JsonChunk[];
  readonly loss_fn_inputs: Readonly<Record<string, JsonTensor>>;
  readonly model_input_spans?: readonly JsonSpan[] | null;
  readonly loss_fn_input_spans?: readonly JsonSpan[] | null;
};
/** Named by a member that holds the fields, or by its own `type`. */
type JsonSpan = Readonly<Record<string, unknown>>;
export type JsonRequest = {
  readonly model_id: string;
  readonly seq_id: number;
  readonly forward_only: boolean;
  readonly loss_fn: string;
  readonly loss_fn_config: Readonly<Record<string, JsonNumber>>;
  readonly loss_fn_config_v2: Readonly<Record<string, { readonly number?: JsonNumber; readonly text?: string }>>;
  readonly data: readonly JsonDatum[];
};

export function requestOf(json: JsonRequest): ForwardBackwardRequest {
  const config = Object.entries(configV2(json)).map(([key, { number, text }]) => [key, text ?? Number(number)] as const);
  return {
    modelId: json.model_id,
    seqId: json.seq_id,
    datums: json.data.map(datumOf),
    lossFn: json.loss_fn,
    lossFnConfig: Object.fromEntries(config),
    forwardOnly: json.forward_only,
  };
}

/** Clients of before the second form of the loss config sent only the first. */
export function configV2({ loss_fn_config, loss_fn_config_v2 }: JsonRequest): JsonRequest['loss_fn_config_v2'] {
  const isOld = Object.keys(loss_fn_config_v2).length === 0;
  return isOld ? mapValues(loss_fn_config, (number) => ({ number })) : loss_fn_config_v2;
}

/** The recorder's JSON with what it leaves out or writes as null left out. */
export function tidyRequest(json: JsonRequest): unknown {
  return {
    ...json,
    data: json.data.map(({ model_input, loss_fn_inputs, model_input_spans, loss_fn_input_spans }) => ({
      model_input: model_input.map(({ expected_tokens, ...chunk }) => ({
        ...chunk,
        ...(expected_tokens == null ? {} : { expected_tokens }),
      })),
      loss_fn_inputs: mapValues(loss_fn_inputs, tidyTensor),
      model_input_spans: (model_input_spans ?? []).map(spanOf),
      loss_fn_input_spans: (loss_fn_input_spans ?? []).map(spanOf),
    })),
  };
}

/** A message's bytes as the generated code reads them. */
export function requestJson(bytes: Uint8Array): unknown {
  const message = fromBinary(ForwardBackwardRequestSchema, bytes);
  return {
    model_id: message.modelId,
    seq_id: message.seqId,
    forward_only: message.forwardOnly,
    loss_fn: message.lossFn,
    loss_fn_config: mapValues(message.lossFnConfig, spelled),
    loss_fn_config_v2: mapValues(message.lossFnConfigV2, ({ value }) =>
      value.case === 'number' ? { number: spelled(value.value) } : { text: value.value },
    ),
    data: message.data.map(({ modelInput, lossFnInputs, modelInputSpans, lossFnInputSpans }) => ({
      model_input: modelInput.map(({ chunk }) => {
        switch (chunk.case) {
          case 'encodedText':
            return { type: 'encoded_text', tokens: Array.from(new Int32Array(new Uint8Array(chunk.value.tokens).buffer)) };
          case 'image': {
            const { data, format, expectedTokens } = chunk.value;
            const expected = expectedTokens === undefined ? {} : { expected_tokens: expectedTokens };
            return { type: 'image', data_base64: base64(data), format, ...expected };
          }
          default:
            return { type: 'dmel', dmel_base64: base64(chunk.value?.dmel ?? new Uint8Array(0)) };
        }
      }),
      loss_fn_inputs: mapValues(lossFnInputs, wireTensorJson),
      model_input_spans: modelInputSpans.map(wireSpan),
      loss_fn_input_spans: lossFnInputSpans.map(wireSpan),
    })),
  };
}

export function tensorJson({ values, shape, sparse }: TensorValue): JsonTensor {
  const csr = sparse && { sparse_crow_indices: [...sparse.crowIndices], sparse_col_indices: [...sparse.colIndices] };
  const dtype = values instanceof Float32Array ? 'float32' : 'int64';
  return { dtype, ...(shape.length > 0 ? { shape } : {}), data: spelledAll(values), ...csr };
}

export function tidyTensor({ dtype, shape, data, sparse_crow_indices, sparse_col_indices }: JsonTensor): JsonTensor {
  const csr = sparse_crow_indices == null ? {} : { sparse_crow_indices, sparse_col_indices: sparse_col_indices ?? [] };
  return { dtype, ...(shape?.length ? { shape } : {}), data: dtype === 'float32' ? data.map(tidyFloat) : data, ...csr };
}

/** As a 32-bit float, which a number in JSON need not be. */
export function tidyFloat(value: JsonNumber): number | string {
  return typeof value === 'number' ? Math.fround(value) : (value ?? 'NaN');
}

/** As the recorder writes numbers: NaN and infinities by name, integers beyond 2^53 as text. */
export function spelled(value: number | bigint): number | string {
  const number = Number(value);
  return Number.isFinite(number) && (typeof value === 'number' || Number.isSafeInteger(number)) ? number : String(value);
}

export function spelledAll(values: TensorValue['values']): (number | string)[] {
  return Array.from(values as Iterable<number | bigint>, spelled);
}

export function mapValues<From, To>(record: Readonly<Record<string, From>>, change: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

function datumOf({ model_input, loss_fn_inputs, model_input_spans, loss_fn_input_spans }: JsonDatum): TrainingDatum {
  return {
    modelInput: model_input.map(chunkOf),
    lossFnInputs: mapValues(loss_fn_inputs, tensorOf),
    ...(model_input_spans == null ? {} : { modelInputSpans: model_input_spans.map(spanOf) }),
    ...(loss_fn_input_spans == null ? {} : { lossFnInputSpans: loss_fn_input_spans.map(spanOf) }),
  };
}

function chunkOf(json: JsonChunk): Chunk {
  if (json.type === 'encoded_text') return { type: 'encoded_text', tokens: Int32Array.from(json.tokens ?? []) };
  if (json.type === 'dmel') return { type: 'dmel', dmel: bytesOf(json.dmel_base64) };
  const expected = json.expected_tokens == null ? {} : { expectedTokens: json.expected_tokens };
  return { type: 'image', data: bytesOf(json.data_base64), format: json.format ?? '', ...expected };
}

function tensorOf({ dtype, shape, data, sparse_crow_indices, sparse_col_indices }: JsonTensor) {
  const narrow = () => Int32Array.from(data, Number);
  const isWide = () => narrow().some((value, i) => value !== Number(data[i]));
  const values =
    dtype === 'float32'
      ? Float32Array.from(data, (value) => Number(value ?? Number.NaN))
      : isWide()
        ? BigInt64Array.from(data, (value) => BigInt(value ?? 0))
        : narrow();
  const crowIndices = sparse_crow_indices && Int32Array.from(sparse_crow_indices);
  const sparse = crowIndices ? { sparse: { crowIndices, colIndices: Int32Array.from(sparse_col_indices ?? []) } } : {};
  return { values, ...(shape == null ? {} : { shape }), ...sparse };
}

function spanOf(json: JsonSpan): ProvenanceSpan {
  const [name, inner] = Object.entries(json).find(([, value]) => typeof value === 'object' && value !== null) ?? [
    json.type ?? json.kind,
    json,
  ];
  const fields = inner as { readonly sequence_id?: string; readonly offset?: number | string; readonly length?: number | string };
  return {
    type: String(name).toLowerCase().startsWith('prompt') ? 'prompt_tokens' : 'sampled_tokens',
    sequenceId: fields.sequence_id ?? '',
    offset: Number(fields.offset ?? 0),
    length: Number(fields.length ?? 0),
  };
}

function wireSpan({ span }: WireSpan): ProvenanceSpan {
  const { sequenceId = '', offset = 0n, length = 0n } = span.value ?? {};
  const type = span.case === 'promptTokens' ? 'prompt_tokens' : 'sampled_tokens';
  return { type, sequenceId, offset: Number(offset), length: Number(length) };
}

function wireTensorJson(tensor: WireTensor): JsonTensor {
  const { shape: _, ...json } = tensorJson(fromWireTensor(tensor));
  const dtype = { [DType.FLOAT32]: 'float32', [DType.INT64]: 'int64' }[tensor.dtype as number] ?? `dtype ${tensor.dtype}`;
  return { ...json, dtype, ...(tensor.shape.length > 0 ? { shape: tensor.shape.map(Number) } : {}) };
}

function bytesOf(base64Text = ''): Uint8Array {
  return new Uint8Array(Buffer.from(base64Text, 'base64'));
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}
