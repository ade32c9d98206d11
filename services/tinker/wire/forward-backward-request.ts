import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { fromWireTensor, type TensorInput, type TensorValue, toWireTensor } from './tensor-values.ts';
import { int32Bytes, readInt32 } from './tensors.ts';
import {
  ChunkSchema,
  DatumSchema,
  ForwardBackwardRequestSchema,
  type LossConfigValue,
  LossConfigValueSchema,
  type Chunk as WireChunk,
  type Datum as WireDatum,
} from './tinker_public_pb.ts';

/** One piece of a model input. `tokens` are int32 ids. */
export type Chunk =
  | { readonly type: 'encoded_text'; readonly tokens: Int32Array }
  | { readonly type: 'image'; readonly data: Uint8Array; readonly format: string; readonly expectedTokens?: number }
  | { readonly type: 'dmel'; readonly dmel: Uint8Array };

/**
 * One training sequence as the protocol wants it: inputs are shifted already, so row i of every loss input belongs to
 * the prediction of `target_tokens[i]` after `modelInput[..i]`. A bare Int32Array is one chunk of text.
 */
export type TrainingDatum = {
  readonly modelInput: Int32Array | readonly Chunk[];
  readonly lossFnInputs: Readonly<Record<string, TensorInput>>;
};

export type LossFnConfig = Readonly<Record<string, number | string>>;

export type ForwardBackwardRequest = {
  readonly modelId: string;
  readonly seqId: number;
  readonly datums: readonly TrainingDatum[];
  readonly lossFn: string;
  readonly lossFnConfig: LossFnConfig;
  readonly forwardOnly: boolean;
};

/** What a server reads: chunks and tensors are always spelled out. */
export type ReceivedDatum = { readonly modelInput: readonly Chunk[]; readonly lossFnInputs: Readonly<Record<string, TensorValue>> };
export type ReceivedForwardBackwardRequest = Omit<ForwardBackwardRequest, 'datums'> & { readonly datums: readonly ReceivedDatum[] };

/** Fields in number order and map keys sorted, so equal requests have equal bytes. */
export function encodeForwardBackwardRequest(request: ForwardBackwardRequest): Uint8Array<ArrayBuffer> {
  const config = Object.entries(request.lossFnConfig).sort(byKey);
  const numbers = config.filter((entry): entry is [string, number] => typeof entry[1] === 'number');
  return toBinary(
    ForwardBackwardRequestSchema,
    create(ForwardBackwardRequestSchema, {
      modelId: request.modelId,
      seqId: request.seqId,
      data: request.datums.map(toWireDatum),
      lossFn: request.lossFn,
      lossFnConfig: Object.fromEntries(numbers),
      forwardOnly: request.forwardOnly,
      lossFnConfigV2: Object.fromEntries(config.map(([key, value]) => [key, toWireConfig(value)])),
    }),
  );
}

/** @throws Error (from protobuf) or RangeError when the bytes are no valid request */
export function decodeForwardBackwardRequest(bytes: Uint8Array): ReceivedForwardBackwardRequest {
  const message = fromBinary(ForwardBackwardRequestSchema, bytes);
  const v2 = Object.entries(message.lossFnConfigV2).flatMap(([key, value]) =>
    value.value.case ? [[key, value.value.value] as const] : [],
  );
  return {
    modelId: message.modelId,
    seqId: message.seqId,
    datums: message.data.map(fromWireDatum),
    lossFn: message.lossFn,
    lossFnConfig: v2.length > 0 ? Object.fromEntries(v2) : message.lossFnConfig,
    forwardOnly: message.forwardOnly,
  };
}

/** The protocol's estimate of a datum's size, by which batches are cut: 4 bytes per text token, tensors as stored. */
export function estimatedBytes(datum: TrainingDatum): number {
  const chunks = datum.modelInput instanceof Int32Array ? [{ type: 'encoded_text', tokens: datum.modelInput } as const] : datum.modelInput;
  let bytes = 0;
  for (const chunk of chunks) {
    if (chunk.type === 'encoded_text') bytes += 4 * chunk.tokens.length;
    else bytes += chunk.type === 'image' ? chunk.data.byteLength : chunk.dmel.byteLength;
  }
  for (const input of Object.values(datum.lossFnInputs)) bytes += estimatedTensorBytes(input);
  return bytes;
}

function estimatedTensorBytes(input: TensorInput): number {
  const { values, sparse } = ArrayBuffer.isView(input) ? { values: input, sparse: undefined } : input;
  const stored = values.length * (values instanceof Float32Array ? 4 : 8);
  return sparse === undefined ? stored : stored + 8 * (sparse.crowIndices.length + sparse.colIndices.length);
}

function toWireDatum(datum: TrainingDatum): WireDatum {
  const chunks = datum.modelInput instanceof Int32Array ? [{ type: 'encoded_text', tokens: datum.modelInput } as const] : datum.modelInput;
  const inputs = Object.entries(datum.lossFnInputs).sort(byKey);
  return create(DatumSchema, {
    modelInput: chunks.map(toWireChunk),
    lossFnInputs: Object.fromEntries(inputs.map(([key, value]) => [key, toWireTensor(value)])),
  });
}

function fromWireDatum(datum: WireDatum): ReceivedDatum {
  const inputs = Object.entries(datum.lossFnInputs).map(([key, tensor]) => [key, fromWireTensor(tensor)] as const);
  return { modelInput: datum.modelInput.map(fromWireChunk), lossFnInputs: Object.fromEntries(inputs) };
}

function toWireChunk(chunk: Chunk): WireChunk {
  switch (chunk.type) {
    case 'encoded_text':
      return create(ChunkSchema, { chunk: { case: 'encodedText', value: { tokens: int32Bytes(chunk.tokens) } } });
    case 'image': {
      const { data, format, expectedTokens } = chunk;
      return create(ChunkSchema, {
        chunk: { case: 'image', value: { data, format, ...(expectedTokens === undefined ? {} : { expectedTokens }) } },
      });
    }
    case 'dmel':
      return create(ChunkSchema, { chunk: { case: 'dmel', value: { dmel: chunk.dmel } } });
  }
}

function fromWireChunk({ chunk }: WireChunk): Chunk {
  switch (chunk.case) {
    case 'encodedText':
      return { type: 'encoded_text', tokens: readInt32(chunk.value.tokens) };
    case 'image': {
      const { data, format, expectedTokens } = chunk.value;
      return { type: 'image', data: new Uint8Array(data), format, ...(expectedTokens === undefined ? {} : { expectedTokens }) };
    }
    case 'dmel':
      return { type: 'dmel', dmel: new Uint8Array(chunk.value.dmel) };
    default:
      throw new RangeError('a model input chunk is neither text nor image nor dmel');
  }
}

function toWireConfig(value: number | string): LossConfigValue {
  return create(LossConfigValueSchema, {
    value: typeof value === 'number' ? { case: 'number', value } : { case: 'text', value },
  });
}

function byKey(a: readonly [string, unknown], b: readonly [string, unknown]): number {
  return a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0;
}
