import {
  encodeForwardBackwardOutput,
  encodeSampleResponse,
  type SampledSequence,
  type TensorInput,
  type TensorValue,
  TOPK_MASK,
  type TopkTable,
} from '../../services/tinker/wire/index.ts';
import type { DecodeResult, LossResult, TopkLogprobs } from '../engine/types.ts';
import type { TableLayout } from './threads/sampling-backend.ts';

/**
 * Bytes of a ForwardBackwardOutput: the field `logprobs`, shaped as the datum's targets, and the metrics. `columns` says how many targets
 * a row of each datum has, undefined for one dimension; neighbours that agree share a record.
 */
export function encodeLossResult({ logprobs, metrics }: LossResult, columns: readonly (number | undefined)[]): Uint8Array<ArrayBuffer> {
  const starts = logprobs.flatMap((_, i) => (i === 0 || columns[i] !== columns[i - 1] ? [i] : []));
  const messages = starts.map((start, i) => {
    const rows = logprobs.slice(start, starts[i + 1]).map((values) => ({ logprobs: shaped(values, columns[start]) }));
    return encodeForwardBackwardOutput({ lossFnOutputType: 'ArrayRecord', lossFnOutputs: rows, metrics: i === 0 ? metrics : {} });
  });
  // Protobuf messages one after the other read as one message that has the records of all.
  return messages.length === 1 && messages[0] !== undefined ? messages[0] : new Uint8Array(Buffer.concat(messages));
}

const shaped = (values: Float32Array, columns: number | undefined): TensorInput =>
  columns === undefined ? values : { values, shape: [values.length / columns, columns] };

export type SampledTokens = Pick<DecodeResult, 'tokens' | 'logprobs' | 'stop' | 'topkSampledLogprobs'>;
export type ScoredPrompt = Pick<
  DecodeResult,
  'promptLogprobs' | 'topkPromptLogprobs' | 'promptTargetLogprobs' | 'promptAlternatives' | 'promptCacheHitTokens'
>;

/**
 * Bytes of a SampleResponse. A position without scores, as position 0, is NaN on the wire, and a masked row of candidates.
 * `targetLayout` is the layout in which the prompt's targets were asked for, and are answered.
 */
export function encodeSample(
  sequences: readonly SampledTokens[],
  prompt: ScoredPrompt,
  targetLayout: TableLayout | null,
): Uint8Array<ArrayBuffer> {
  const { promptLogprobs, topkPromptLogprobs, promptTargetLogprobs, promptAlternatives, promptCacheHitTokens } = prompt;
  return encodeSampleResponse({
    sequences: sequences.map(
      ({ tokens, logprobs, stop, topkSampledLogprobs }): SampledSequence => ({
        tokens,
        logprobs,
        stopReason: stop,
        topk: masked(topkSampledLogprobs),
      }),
    ),
    promptLogprobs,
    topkPromptLogprobs: masked(topkPromptLogprobs),
    promptCacheHitTokens,
    targetPromptLogprobs: promptTargetLogprobs === null || targetLayout === null ? null : laidOut(promptTargetLogprobs, targetLayout),
    promptAltTokens: promptAlternatives && alternatives(promptAlternatives),
  });
}

/** Candidates that mean nothing (NaN) carry the protocol's mask; clients drop them. */
function masked(topk: TopkLogprobs | null): TopkTable | null {
  if (topk === null) return null;
  const { k, tokenIds, logprobs } = topk;
  return {
    k,
    length: k === 0 ? 0 : tokenIds.length / k,
    tokenIds: tokenIds.map((id) => Math.max(id, 0)),
    logprobs: logprobs.map((value) => (Number.isNaN(value) ? TOPK_MASK : value)),
  };
}

function laidOut(values: Float32Array, { rows, columns, sparse }: TableLayout): TensorValue {
  const shape = [rows, columns];
  if (sparse === null) return { values, shape };
  return { values, shape, sparse: { crowIndices: Int32Array.from(sparse.crow), colIndices: Int32Array.from(sparse.col) } };
}

function alternatives({ k, tokenIds, logprobs }: TopkLogprobs): { tokens: TensorValue; logprobs: TensorValue } {
  const shape = [tokenIds.length / k, k];
  return { tokens: { values: tokenIds, shape }, logprobs: { values: logprobs, shape } };
}
