import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeForwardBackwardOutput,
  decodeSampleResponse,
  encodeForwardBackwardOutput,
  encodeSampleResponse,
  type SampleResponse,
} from './index.ts';
import { float32Bytes, int32Bytes, int64Bytes, readBfloat16, readFloat32, readInt32, readInt64, readInt64AsInt32 } from './tensors.ts';

/** The bytes at an odd position of a larger buffer, as they come out of a message. */
function misaligned(bytes: Uint8Array): Uint8Array {
  const buffer = Buffer.alloc(bytes.length + 1);
  buffer.set(bytes, 1);
  return buffer.subarray(1);
}

describe('typed arrays and bytes', () => {
  test('round trips, at any alignment', () => {
    fc.assert(
      fc.property(fc.int32Array(), fc.float32Array(), fc.bigInt64Array(), (ints, floats, longs) => {
        expect(readInt32(misaligned(int32Bytes(ints)))).toEqual(ints);
        expect(readInt64(misaligned(int64Bytes(ints)))).toEqual(ints);
        expect(readFloat32(misaligned(float32Bytes(floats)))).toEqual(floats);
        const read = readInt64(misaligned(int64Bytes(longs)));
        expect(Array.from(read as Iterable<number | bigint>, BigInt)).toEqual(Array.from(longs));
      }),
    );
  });

  test('int64 of 32-bit integers has the bytes of the 64-bit ones', () => {
    expect(int64Bytes(Int32Array.of(-100, 7))).toEqual(int64Bytes(BigInt64Array.of(-100n, 7n)));
  });

  test('what was read does not change with the message', () => {
    const message = Buffer.from(int32Bytes(Int32Array.of(1, 2)));
    const read = readInt32(message);
    message.fill(0);
    expect(read).toEqual(Int32Array.of(1, 2));
  });

  test('bfloat16 widens', () => {
    expect(readBfloat16(Uint8Array.of(0x00, 0xbf, 0x81, 0xbf))).toEqual(Float32Array.of(-0.5, -1.0078125));
  });

  test('broken lengths and oversized indices are refused', () => {
    expect(() => readInt32(new Uint8Array(6))).toThrow(RangeError);
    expect(() => readInt64(new Uint8Array(12))).toThrow(RangeError);
    expect(() => readInt64AsInt32(int64Bytes(BigInt64Array.of(2n ** 40n)))).toThrow(RangeError);
  });
});

describe('the server side of the results', () => {
  test('ragged forward_backward output', () => {
    const output = {
      lossFnOutputType: 'ArrayRecord',
      lossFnOutputs: [{ logprobs: Float32Array.of(-1, -2) }, { logprobs: Float32Array.of() }, { logprobs: Float32Array.of(-3) }],
      metrics: { 'loss:sum': 2.5 },
    };
    expect(decodeForwardBackwardOutput(encodeForwardBackwardOutput(output))).toEqual({
      ...output,
      lossFnOutputs: output.lossFnOutputs.map(({ logprobs }) => ({ logprobs: { values: logprobs, shape: [logprobs.length] } })),
    });
  });

  test('sample response', () => {
    const response: SampleResponse = {
      sequences: [{ tokens: Int32Array.of(5, 10), logprobs: Float32Array.of(-0.5, 0), stopReason: 'length', topk: null }],
      promptLogprobs: Float32Array.of(Number.NaN, -1),
      topkPromptLogprobs: { k: 1, length: 2, tokenIds: Int32Array.of(0, 4), logprobs: Float32Array.of(-99_999, -1) },
      promptCacheHitTokens: 2,
      targetPromptLogprobs: null,
      promptAltTokens: null,
    };
    expect(decodeSampleResponse(encodeSampleResponse(response))).toEqual(response);
  });
});
