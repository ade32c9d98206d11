import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, test } from 'vitest';
import {
  decodeForwardBackwardOutput,
  decodeSampleResponse,
  encodeSampleResponse,
  type SampleResponse,
  TOPK_MASK,
  topkRow,
} from './index.ts';
import { float32Bytes, int32Bytes, int64Bytes } from './tensors.ts';
import { DType, ForwardBackwardOutputSchema, SampleResponseSchema, type StopReason } from './tinker_public_pb.ts';

type Record = { fields: { [name: string]: Field }; numDatums?: number };
type Field = { data: Uint8Array; offsets: number[]; dtype: DType; trailing?: number[] };

function decode(records: readonly Record[], lossFnOutputType = '') {
  const lossFnOutputs = records.map(({ fields, numDatums = 0 }) => ({
    fields: Object.fromEntries(
      Object.entries(fields).map(([name, { data, offsets, dtype, trailing = [] }]) => [
        name,
        { data, offsets: int64Bytes(Int32Array.from(offsets)), dtype, trailingShape: trailing.map(BigInt) },
      ]),
    ),
    numDatums: BigInt(numDatums),
  }));
  return decodeForwardBackwardOutput(
    toBinary(ForwardBackwardOutputSchema, create(ForwardBackwardOutputSchema, { lossFnOutputType, lossFnOutputs })),
  );
}

const floats = (...values: number[]) => float32Bytes(Float32Array.from(values));
const one: Field = { data: floats(-1, -2), offsets: [0, 8], dtype: DType.FLOAT32 };

describe('forward_backward outputs', () => {
  test('several records, each with a dtype and a trailing shape of its own', () => {
    const records = [
      { fields: { logprobs: { ...one, data: floats(-1, -2, -3, -4), offsets: [0, 8, 16], trailing: [2] } }, numDatums: 2 },
      { fields: { logprobs: { data: Uint8Array.of(0, 0xbf, 0x80, 0xbf), offsets: [0, 4], dtype: DType.BFLOAT16 } }, numDatums: 1 },
      { fields: { logprobs: { data: int32Bytes(Int32Array.of(7)), offsets: [0, 4], dtype: DType.INT32 } }, numDatums: 1 },
    ];
    expect(decode(records, 'a.b:Name')).toEqual({
      lossFnOutputType: 'Name',
      metrics: {},
      lossFnOutputs: [
        { logprobs: { values: Float32Array.of(-1, -2), shape: [1, 2] } },
        { logprobs: { values: Float32Array.of(-3, -4), shape: [1, 2] } },
        { logprobs: { values: Float32Array.of(-0.5, -1), shape: [2] } },
        { logprobs: { values: Int32Array.of(7), shape: [1] } },
      ],
    });
  });

  test('datums that nobody counted are as many as the first field has', () => {
    expect(decode([{ fields: { logprobs: one } }, { fields: { logprobs: one } }]).lossFnOutputs).toHaveLength(2);
  });

  test('rows of no elements', () => {
    const empty = { data: new Uint8Array(0), offsets: [0, 0], dtype: DType.FLOAT32, trailing: [0] };
    expect(decode([{ fields: { logprobs: empty }, numDatums: 1 }]).lossFnOutputs).toEqual([
      { logprobs: { values: new Float32Array(0), shape: [0, 0] } },
    ]);
  });

  test('NaN and infinities come through', () => {
    const data = floats(Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY);
    expect(decode([{ fields: { logprobs: { ...one, data, offsets: [0, 12] } }, numDatums: 1 }]).lossFnOutputs[0]?.logprobs?.values).toEqual(
      Float32Array.of(Number.NaN, Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY),
    );
  });

  test('what does not fit together is refused with both numbers', () => {
    expect(() => decode([{ fields: { logprobs: one }, numDatums: 3 }])).toThrow(/1 datums.*3/);
    expect(() => decode([{ fields: { logprobs: { ...one, offsets: [0, 12] } }, numDatums: 1 }])).toThrow(/0 \.\. 12 of 8/);
    expect(() => decode([{ fields: { logprobs: { ...one, offsets: [0, 6] } }, numDatums: 1 }])).toThrow(/0 \.\. 6/);
    expect(() => decode([{ fields: { logprobs: { ...one, trailing: [3] } }, numDatums: 1 }])).toThrow(RangeError);
    expect(() => decode([{ fields: { logprobs: { ...one, dtype: DType.UNSPECIFIED } }, numDatums: 1 }])).toThrow(/dtype/);
  });
});

describe('samples', () => {
  const response: SampleResponse = {
    sequences: [],
    promptLogprobs: null,
    topkPromptLogprobs: null,
    promptCacheHitTokens: 0,
    targetPromptLogprobs: null,
    promptAltTokens: null,
  };

  test('candidates of every kind, sampled and of the prompt, and targets that are sparse', () => {
    const topk = {
      k: 3,
      length: 2,
      tokenIds: Int32Array.of(7, 0, 0, 0, 0, 0),
      logprobs: Float32Array.of(-0.5, Number.NEGATIVE_INFINITY, TOPK_MASK, TOPK_MASK, TOPK_MASK, TOPK_MASK),
    };
    const full: SampleResponse = {
      ...response,
      sequences: [{ tokens: Int32Array.of(5), logprobs: Float32Array.of(Number.NaN), stopReason: 'stop', topk }],
      targetPromptLogprobs: {
        values: Float32Array.of(-1),
        shape: [2, 9],
        sparse: { crowIndices: Int32Array.of(0, 0, 1), colIndices: Int32Array.of(3) },
      },
    };
    const decoded = decodeSampleResponse(encodeSampleResponse(full));
    expect(decoded).toEqual(full);
    expect(topkRow(topk, 0)).toEqual([
      { tokenId: 7, logprob: -0.5 },
      { tokenId: 0, logprob: Number.NEGATIVE_INFINITY },
    ]);
    expect(topkRow(topk, 1)).toEqual([]);
    expect(topkRow(topk, 2)).toEqual([]);
  });

  test('an unknown reason to stop, and values without their columns, are refused', () => {
    const unknown = create(SampleResponseSchema, { sequences: [{ stopReason: 9 as StopReason }] });
    expect(() => decodeSampleResponse(toBinary(SampleResponseSchema, unknown))).toThrow(/stop reason 9/);
    const sparse = { crowIndices: Int32Array.of(0, 1), colIndices: new Int32Array(0) };
    const lacking = encodeSampleResponse({ ...response, targetPromptLogprobs: { values: Float32Array.of(-1), shape: [1, 2], sparse } });
    expect(() => decodeSampleResponse(lacking)).toThrow(/1 values for 0 columns/);
  });

  test('empty prompt scores read as absent', () => {
    expect(decodeSampleResponse(encodeSampleResponse({ ...response, promptLogprobs: new Float32Array(0) })).promptLogprobs).toBeNull();
  });
});
