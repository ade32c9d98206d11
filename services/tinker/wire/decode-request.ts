import { fromBinary } from '@bufbuild/protobuf';
import type { Chunk, ProvenanceSpan, ReceivedDatum, ReceivedForwardBackwardRequest } from './forward-backward-request.ts';
import { fromWireTensor } from './tensor-values.ts';
import { readInt32 } from './tensors.ts';
import {
  ForwardBackwardRequestSchema,
  type Chunk as WireChunk,
  type Datum as WireDatum,
  type ProvenanceSpan as WireSpan,
} from './tinker_public_pb.ts';

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

function fromWireDatum(datum: WireDatum): ReceivedDatum {
  const inputs = Object.entries(datum.lossFnInputs).map(([key, tensor]) => [key, fromWireTensor(tensor)] as const);
  return {
    modelInput: datum.modelInput.map(fromWireChunk),
    lossFnInputs: Object.fromEntries(inputs),
    ...(datum.modelInputSpans.length > 0 ? { modelInputSpans: datum.modelInputSpans.map(fromWireSpan) } : {}),
    ...(datum.lossFnInputSpans.length > 0 ? { lossFnInputSpans: datum.lossFnInputSpans.map(fromWireSpan) } : {}),
  };
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

function fromWireSpan({ span }: WireSpan): ProvenanceSpan {
  if (span.case === undefined) throw new RangeError('a provenance span is neither of a prompt nor of a sampled sequence');
  const { sequenceId, offset, length } = span.value;
  const type = span.case === 'promptTokens' ? 'prompt_tokens' : 'sampled_tokens';
  return { type, sequenceId, offset: Number(offset), length: Number(length) };
}
