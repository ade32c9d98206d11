import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compareKeys } from './encode-request.ts';
import { type Chunk, decodeForwardBackwardRequest, encodeForwardBackwardRequest, type ForwardBackwardRequest } from './index.ts';
import { toWireTensor } from './tensor-values.ts';
import { int32Bytes } from './tensors.ts';
import { ForwardBackwardRequestSchema } from './tinker_public_pb.ts';

const name = fc.stringMatching(/^[a-z][a-z_]{0,6}$/);
const size = fc.integer({ min: 0, max: 2 ** 40 });
const span = fc.record({
  type: fc.constantFrom('prompt_tokens' as const, 'sampled_tokens' as const),
  sequenceId: fc.string(),
  offset: size,
  length: size,
});
const chunk: fc.Arbitrary<Chunk> = fc.oneof(
  fc.record({ type: fc.constant('encoded_text' as const), tokens: fc.int32Array() }),
  fc.record(
    { type: fc.constant('image' as const), data: fc.uint8Array(), format: fc.string(), expectedTokens: fc.integer({ min: -1, max: 9000 }) },
    { requiredKeys: ['type', 'data', 'format'] },
  ),
  fc.record({ type: fc.constant('dmel' as const), dmel: fc.uint8Array() }),
);
const values = fc.oneof(fc.int32Array(), fc.bigInt64Array(), fc.float32Array());
const sparse = fc.record({ crowIndices: fc.int32Array({ min: 0 }), colIndices: fc.int32Array({ min: 0 }) });
const tensor = fc.record({ values, shape: fc.array(fc.nat()), sparse }, { requiredKeys: ['values'] });
const request: fc.Arbitrary<ForwardBackwardRequest> = fc.record({
  modelId: fc.string(),
  seqId: fc.nat(),
  datums: fc.array(
    fc.record({
      modelInput: fc.array(chunk, { maxLength: 3 }),
      lossFnInputs: fc.dictionary(name, tensor, { maxKeys: 3 }),
      modelInputSpans: fc.array(span, { maxLength: 3 }),
      lossFnInputSpans: fc.array(span, { maxLength: 3 }),
    }),
    { maxLength: 3 },
  ),
  lossFn: fc.string(),
  lossFnConfig: fc.dictionary(name, fc.oneof(fc.double(), fc.string())),
  forwardOnly: fc.boolean(),
});

/** The same request as the generated code has it. */
function message({ modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly }: ForwardBackwardRequest) {
  const config = Object.entries(lossFnConfig).sort(byName);
  return create(ForwardBackwardRequestSchema, {
    modelId,
    seqId,
    data: datums.map(({ modelInput, lossFnInputs, modelInputSpans = [], lossFnInputSpans = [] }) => ({
      modelInput: [...(modelInput as readonly Chunk[])].map((one) => ({ chunk: wireChunk(one) })),
      lossFnInputs: Object.fromEntries(
        Object.entries(lossFnInputs)
          .sort(byName)
          .map(([key, input]) => [
            key,
            { ...toWireTensor(input), shape: ArrayBuffer.isView(input) ? [] : (input.shape ?? []).map(BigInt) },
          ]),
      ),
      modelInputSpans: modelInputSpans.map(wireSpan),
      lossFnInputSpans: lossFnInputSpans.map(wireSpan),
    })),
    lossFn,
    lossFnConfig: Object.fromEntries(config.filter((entry): entry is [string, number] => typeof entry[1] === 'number')),
    forwardOnly,
    lossFnConfigV2: Object.fromEntries(
      config.map(([key, value]) => [
        key,
        { value: typeof value === 'number' ? { case: 'number' as const, value } : { case: 'text' as const, value } },
      ]),
    ),
  });
}

function wireChunk(one: Chunk) {
  switch (one.type) {
    case 'encoded_text':
      return { case: 'encodedText' as const, value: { tokens: int32Bytes(one.tokens) } };
    case 'image':
      return { case: 'image' as const, value: { ...one } };
    case 'dmel':
      return { case: 'dmel' as const, value: { dmel: one.dmel } };
  }
}

function wireSpan({ type, sequenceId, offset, length }: { type: string; sequenceId: string; offset: number; length: number }) {
  const value = { sequenceId, offset: BigInt(offset), length: BigInt(length) };
  return { span: type === 'prompt_tokens' ? { case: 'promptTokens' as const, value } : { case: 'sampledTokens' as const, value } };
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return compareKeys(a, b);
}

test('map keys go by their bytes, a longer one before its beginning', () => {
  expect(['b', 'a', 'advantages', 'ab', '\u{1f600}', '\uffee'].sort(compareKeys)).toEqual([
    'ab',
    'advantages',
    'a',
    'b',
    '\uffee',
    '\u{1f600}',
  ]);
});

describe('our encoder and the generated code', () => {
  test('write the same bytes', () => {
    fc.assert(
      fc.property(request, (given) => {
        const ours = encodeForwardBackwardRequest(given);
        const generated = message(given);
        expect(fromBinary(ForwardBackwardRequestSchema, ours)).toEqual(
          fromBinary(ForwardBackwardRequestSchema, toBinary(ForwardBackwardRequestSchema, generated)),
        );
        expect(Buffer.from(ours).equals(toBinary(ForwardBackwardRequestSchema, generated))).toBe(true);
      }),
      { numRuns: 300 },
    );
  });
});

describe('a request read again', () => {
  const base = { modelId: 'm', seqId: 1, lossFn: 'cross_entropy', lossFnConfig: {}, forwardOnly: false };

  test('keeps provenance', () => {
    const modelInputSpans = [
      { type: 'prompt_tokens', sequenceId: 'seq-1-0', offset: 0, length: 2 },
      { type: 'sampled_tokens', sequenceId: 'seq-1-0', offset: 3, length: 0 },
    ] as const;
    const lossFnInputSpans = [{ type: 'sampled_tokens', sequenceId: 'é', offset: 2 ** 33, length: 7 }] as const;
    const [datum] = decodeForwardBackwardRequest(
      encodeForwardBackwardRequest({
        ...base,
        datums: [{ modelInput: Int32Array.of(1, 2), lossFnInputs: {}, modelInputSpans, lossFnInputSpans }],
      }),
    ).datums;
    expect(datum).toMatchObject({ modelInputSpans, lossFnInputSpans });
  });

  test('takes a tensor without a shape as a list, and map keys by their bytes', () => {
    const lossFnInputs = { '\u{1f600}': { values: Float32Array.of(1) }, '\uff5e': Int32Array.of(2), 7: Int32Array.of(3) };
    const bytes = encodeForwardBackwardRequest({ ...base, datums: [{ modelInput: Int32Array.of(1), lossFnInputs }] });
    const at = ['7', '\uff5e', '\u{1f600}'].map((key) =>
      Buffer.from(bytes).indexOf(`\n${String.fromCharCode(Buffer.byteLength(key))}${key}`),
    );
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(at[0]).toBeGreaterThan(0);
    expect(decodeForwardBackwardRequest(bytes).datums[0]?.lossFnInputs['\u{1f600}']).toEqual({ values: Float32Array.of(1), shape: [1] });
  });

  test('a shape that is no list of whole numbers is refused', () => {
    const datums = [{ modelInput: Int32Array.of(1), lossFnInputs: { weights: { values: Float32Array.of(1), shape: [0.5] } } }];
    expect(() => encodeForwardBackwardRequest({ ...base, datums })).toThrow(RangeError);
  });
});
