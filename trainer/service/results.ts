import { create, toBinary } from '@bufbuild/protobuf';
import {
  ArrayRecordSchema,
  BatchedTensorSchema,
  DType,
  ForwardBackwardOutputSchema,
  SampledSequenceSchema,
  SampleResponseSchema,
  StopReason,
  TopkLogprobsSchema,
} from '../../services/tinker/wire/tinker_public_pb.ts';
import type { DecodeResult, LossResult, TopkLogprobs } from '../engine/types.ts';

/** Bytes of a ForwardBackwardOutput: one record with the field `logprobs`, and the metrics. */
export function encodeLossResult(result: LossResult): Uint8Array<ArrayBuffer> {
  const offsets = new BigInt64Array(result.logprobs.length + 1);
  let floatsBefore = 0;
  result.logprobs.forEach((values, i) => {
    floatsBefore += values.length;
    offsets[i + 1] = BigInt(4 * floatsBefore);
  });
  const all = new Float32Array(floatsBefore);
  result.logprobs.forEach((values, i) => {
    all.set(values, Number(offsets[i] ?? 0n) / 4);
  });
  const logprobs = create(BatchedTensorSchema, { data: bytesOf(all), offsets: bytesOf(offsets), dtype: DType.FLOAT32 });
  const record = create(ArrayRecordSchema, {
    typeTag: 'ArrayRecord',
    fields: { logprobs },
    numDatums: BigInt(result.logprobs.length),
  });
  return toBinary(
    ForwardBackwardOutputSchema,
    create(ForwardBackwardOutputSchema, { lossFnOutputType: 'ArrayRecord', lossFnOutputs: [record], metrics: { ...result.metrics } }),
  );
}

export type SampledTokens = Pick<DecodeResult, 'tokens' | 'logprobs' | 'stop'>;
export type ScoredPrompt = Pick<DecodeResult, 'promptLogprobs' | 'topkPromptLogprobs' | 'promptCacheHitTokens'>;

/** Bytes of a SampleResponse. A position without scores, as position 0, is NaN on the wire, and a masked row of candidates. */
export function encodeSample(sequences: readonly SampledTokens[], prompt: ScoredPrompt): Uint8Array<ArrayBuffer> {
  const message = create(SampleResponseSchema, {
    sequences: sequences.map((sequence) =>
      create(SampledSequenceSchema, {
        stopReason: sequence.stop === 'stop' ? StopReason.STOP : StopReason.LENGTH,
        tokens: bytesOf(sequence.tokens),
        logprobs: bytesOf(sequence.logprobs),
      }),
    ),
    promptCacheHitTokens: prompt.promptCacheHitTokens,
  });
  if (prompt.promptLogprobs !== null) message.promptLogprobs = bytesOf(prompt.promptLogprobs);
  if (prompt.topkPromptLogprobs !== null) message.topkPromptLogprobs = encodeTopk(prompt.topkPromptLogprobs);
  return toBinary(SampleResponseSchema, message);
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

const bytesOf = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array<ArrayBuffer> =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength).slice();
