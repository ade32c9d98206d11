import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { fromWireTensor, type TensorValue, toWireTensor } from './tensor-values.ts';
import { float32Bytes, int32Bytes, readFloat32, readInt32 } from './tensors.ts';
import {
  PromptAltTokensSchema,
  SampledSequenceSchema,
  SampleResponseSchema,
  StopReason,
  TopkLogprobsSchema,
  type SampledSequence as WireSampledSequence,
  type SampleResponse as WireSampleResponse,
  type TopkLogprobs as WireTopk,
} from './tinker_public_pb.ts';

/** k candidates at each of `length` positions, row-major. A row with fewer is padded at its end with id 0 and TOPK_MASK. */
export type TopkTable = {
  readonly k: number;
  readonly length: number;
  readonly tokenIds: Int32Array;
  /** Nats. */
  readonly logprobs: Float32Array;
};

export const TOPK_MASK = -99_999;

export type SampledSequence = {
  /** Ends with the stop token when one stopped it. */
  readonly tokens: Int32Array;
  /** Nats, one per token; null when the server sent none. */
  readonly logprobs: Float32Array | null;
  readonly stopReason: 'stop' | 'length';
  readonly topk: TopkTable | null;
};

export type SampleResponse = {
  readonly sequences: readonly SampledSequence[];
  /** Nats per prompt position; NaN where there is none (position 0). */
  readonly promptLogprobs: Float32Array | null;
  readonly topkPromptLogprobs: TopkTable | null;
  readonly promptCacheHitTokens: number;
  readonly targetPromptLogprobs: TensorValue | null;
  readonly promptAltTokens: { readonly tokens: TensorValue; readonly logprobs: TensorValue } | null;
};

/** The candidates at one position without the padding, best first as the server sent them. Empty when the row is all padding (position 0). */
export function topkRow(table: TopkTable, position: number): { tokenId: number; logprob: number }[] {
  const start = position * table.k;
  let end = Math.min(start + table.k, table.tokenIds.length);
  while (end > start && table.tokenIds[end - 1] === 0 && table.logprobs[end - 1] === TOPK_MASK) end--;
  const logprobs = table.logprobs.subarray(start, end);
  return Array.from(table.tokenIds.subarray(start, end), (tokenId, i) => ({ tokenId, logprob: logprobs[i] as number }));
}

export function encodeSampleResponse(response: SampleResponse): Uint8Array<ArrayBuffer> {
  const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = response;
  const message = create(SampleResponseSchema, {
    sequences: response.sequences.map(({ tokens, logprobs, stopReason, topk }) =>
      create(SampledSequenceSchema, {
        stopReason: stopReason === 'stop' ? StopReason.STOP : StopReason.LENGTH,
        tokens: int32Bytes(tokens),
        ...(logprobs === null ? {} : { logprobs: float32Bytes(logprobs) }),
        ...(topk === null ? {} : { topkSampledLogprobs: toWireTopk(topk) }),
      }),
    ),
    promptCacheHitTokens: response.promptCacheHitTokens,
  });
  if (promptLogprobs !== null) message.promptLogprobs = float32Bytes(promptLogprobs);
  if (topkPromptLogprobs !== null) message.topkPromptLogprobs = toWireTopk(topkPromptLogprobs);
  if (targetPromptLogprobs !== null) message.targetPromptLogprobs = toWireTensor(targetPromptLogprobs);
  if (promptAltTokens !== null) {
    const { tokens, logprobs } = promptAltTokens;
    message.promptAltTokens = create(PromptAltTokensSchema, { tokens: toWireTensor(tokens), logprobs: toWireTensor(logprobs) });
  }
  return toBinary(SampleResponseSchema, message);
}

/** @throws Error (from protobuf) or RangeError when the bytes are no valid response */
export function decodeSampleResponse(bytes: Uint8Array): SampleResponse {
  const message = fromBinary(SampleResponseSchema, bytes);
  return {
    sequences: message.sequences.map((sequence) => ({
      tokens: readInt32(sequence.tokens),
      logprobs: sequence.logprobs?.byteLength ? readFloat32(sequence.logprobs) : null,
      stopReason: fromWireStop(sequence.stopReason),
      topk: fromWireTopk(sequence.topkSampledLogprobs),
    })),
    promptLogprobs: message.promptLogprobs?.byteLength ? readFloat32(message.promptLogprobs) : null,
    topkPromptLogprobs: fromWireTopk(message.topkPromptLogprobs),
    promptCacheHitTokens: message.promptCacheHitTokens,
    targetPromptLogprobs: message.targetPromptLogprobs === undefined ? null : fromWireTensor(message.targetPromptLogprobs),
    promptAltTokens: fromWireAltTokens(message),
  };
}

function fromWireStop(reason: WireSampledSequence['stopReason']): SampledSequence['stopReason'] {
  if (reason === StopReason.STOP) return 'stop';
  if (reason === StopReason.LENGTH) return 'length';
  throw new RangeError(`unknown stop reason ${reason}`);
}

function fromWireAltTokens({ promptAltTokens: alt }: WireSampleResponse): SampleResponse['promptAltTokens'] {
  if (alt?.tokens === undefined || alt.logprobs === undefined) return null;
  return { tokens: fromWireTensor(alt.tokens), logprobs: fromWireTensor(alt.logprobs) };
}

function toWireTopk({ k, length, tokenIds, logprobs }: TopkTable): WireTopk {
  return create(TopkLogprobsSchema, { k, length, tokenIds: int32Bytes(tokenIds), logprobs: float32Bytes(logprobs) });
}

/** A table of no rows or no columns counts as absent. */
function fromWireTopk(topk: WireTopk | undefined): TopkTable | null {
  if (topk === undefined || topk.k === 0 || topk.length === 0) return null;
  const { k, length } = topk;
  const tokenIds = readInt32(topk.tokenIds);
  const logprobs = readFloat32(topk.logprobs);
  if (tokenIds.length !== k * length || logprobs.length !== k * length) {
    throw new RangeError(`a top-k table of ${length} x ${k} holds ${tokenIds.length} ids and ${logprobs.length} log-probabilities`);
  }
  return { k, length, tokenIds, logprobs };
}
