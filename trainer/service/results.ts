import { create, toBinary } from '@bufbuild/protobuf';
import {
  ArrayRecordSchema,
  BatchedTensorSchema,
  DType,
  ForwardBackwardOutputSchema,
  PromptAltTokensSchema,
  SampledSequenceSchema,
  SampleResponseSchema,
  SparseCsrSchema,
  StopReason,
  TensorSchema,
  TopkLogprobsSchema,
} from '../../services/tinker/wire/tinker_public_pb.ts';
import type { DecodeResult, LossResult, TopkLogprobs } from '../engine/types.ts';
import type { TableLayout } from './threads/sampling-backend.ts';

/**
 * Bytes of a ForwardBackwardOutput: the field `logprobs`, shaped as the datum's targets, and the metrics. `columns` says how many targets
 * a row of each datum has, undefined for one dimension; neighbours that agree share a record.
 */
export function encodeLossResult(result: LossResult, columns: readonly (number | undefined)[]): Uint8Array<ArrayBuffer> {
  const { logprobs } = result;
  const starts = logprobs.flatMap((_, i) => (i === 0 || columns[i] !== columns[i - 1] ? [i] : []));
  const records = starts.map((start, i) => lossRecord(logprobs.slice(start, starts[i + 1]), columns[start]));
  return toBinary(
    ForwardBackwardOutputSchema,
    create(ForwardBackwardOutputSchema, { lossFnOutputType: 'ArrayRecord', lossFnOutputs: records, metrics: { ...result.metrics } }),
  );
}

function lossRecord(datums: readonly Float32Array[], columns: number | undefined) {
  const offsets = new BigInt64Array(datums.length + 1);
  const all = new Float32Array(datums.reduce((sum, values) => sum + values.length, 0));
  let floatsBefore = 0;
  datums.forEach((values, i) => {
    all.set(values, floatsBefore);
    floatsBefore += values.length;
    offsets[i + 1] = BigInt(4 * floatsBefore);
  });
  const logprobs = create(BatchedTensorSchema, {
    data: bytesOf(all),
    offsets: bytesOf(offsets),
    dtype: DType.FLOAT32,
    trailingShape: columns === undefined ? [] : [BigInt(columns)],
  });
  return create(ArrayRecordSchema, { typeTag: 'ArrayRecord', fields: { logprobs }, numDatums: BigInt(datums.length) });
}

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
  const message = create(SampleResponseSchema, {
    sequences: sequences.map(encodeSequence),
    promptCacheHitTokens: prompt.promptCacheHitTokens,
  });
  const { promptLogprobs, topkPromptLogprobs, promptTargetLogprobs, promptAlternatives } = prompt;
  if (promptLogprobs !== null) message.promptLogprobs = bytesOf(promptLogprobs);
  if (topkPromptLogprobs !== null) message.topkPromptLogprobs = encodeTopk(topkPromptLogprobs);
  if (promptTargetLogprobs !== null && targetLayout !== null) {
    message.targetPromptLogprobs = encodeTable(promptTargetLogprobs, targetLayout);
  }
  if (promptAlternatives !== null) message.promptAltTokens = encodeAlternatives(promptAlternatives);
  return toBinary(SampleResponseSchema, message);
}

function encodeSequence(sequence: SampledTokens) {
  const message = create(SampledSequenceSchema, {
    stopReason: sequence.stop === 'stop' ? StopReason.STOP : StopReason.LENGTH,
    tokens: bytesOf(sequence.tokens),
    logprobs: bytesOf(sequence.logprobs),
  });
  if (sequence.topkSampledLogprobs !== null) message.topkSampledLogprobs = encodeTopk(sequence.topkSampledLogprobs);
  return message;
}

/** Entries that mean nothing carry this log-probability; clients drop them (SDK: entries with lp <= -99999). */
const MASKED_LOGPROB = -99999;

function encodeTopk(topk: TopkLogprobs) {
  return create(TopkLogprobsSchema, {
    tokenIds: bytesOf(topk.tokenIds.map((id) => Math.max(id, 0))),
    logprobs: bytesOf(topk.logprobs.map((value) => (Number.isNaN(value) ? MASKED_LOGPROB : value))),
    k: topk.k,
    length: topk.k === 0 ? 0 : topk.tokenIds.length / topk.k,
  });
}

function encodeTable(values: Float32Array, { rows, columns, sparse }: TableLayout) {
  const shape = [BigInt(rows), BigInt(columns)];
  if (sparse === null) return create(TensorSchema, { data: { case: 'dense', value: bytesOf(values) }, dtype: DType.FLOAT32, shape });
  const [crowIndices, colIndices] = [sparse.crow, sparse.col].map((indices) => bytesOf(BigInt64Array.from(indices, BigInt)));
  const value = create(SparseCsrSchema, {
    values: bytesOf(values),
    crowIndices: crowIndices as Uint8Array<ArrayBuffer>,
    colIndices: colIndices as Uint8Array<ArrayBuffer>,
  });
  return create(TensorSchema, { data: { case: 'sparseCsr', value }, dtype: DType.FLOAT32, shape });
}

function encodeAlternatives({ k, tokenIds, logprobs }: TopkLogprobs) {
  const shape = [BigInt(tokenIds.length / k), BigInt(k)];
  const tokens = bytesOf(BigInt64Array.from(tokenIds, BigInt));
  return create(PromptAltTokensSchema, {
    tokens: create(TensorSchema, { data: { case: 'dense', value: tokens }, dtype: DType.INT64, shape }),
    logprobs: create(TensorSchema, { data: { case: 'dense', value: bytesOf(logprobs) }, dtype: DType.FLOAT32, shape }),
  });
}

const bytesOf = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).slice();
