import { create, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { DatumSchema, DType, ForwardBackwardRequestSchema, LossConfigValueSchema } from '../../services/tinker/wire/tinker_public_pb.ts';
import { UserError } from './failures.ts';
import { decodeForwardBackward } from './loss-batch.ts';

const LIMITS = { vocab: 128, context: 192 };
const bytes = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array => new Uint8Array(array.buffer);
const tensor = (array: Float32Array | BigInt64Array, dtype: DType) => ({
  data: { case: 'dense' as const, value: bytes(array) },
  dtype,
  shape: [BigInt(array.length)],
});
const datum = (tokens: readonly number[], targets: readonly number[], floats: Readonly<Record<string, readonly number[]>>) =>
  create(DatumSchema, {
    modelInput: [{ chunk: { case: 'encodedText', value: { tokens: bytes(Int32Array.from(tokens)) } } }],
    lossFnInputs: {
      target_tokens: tensor(BigInt64Array.from(targets.map(BigInt)), DType.INT64),
      ...Object.fromEntries(Object.entries(floats).map(([key, values]) => [key, tensor(Float32Array.from(values), DType.FLOAT32)])),
    },
  });
const policy = datum([1, 2], [2, 3], { logprobs: [-1, -2], advantages: [0.5, -0.5] });

const ppo = (config: Readonly<Record<string, number>>, configV2: Readonly<Record<string, number | string>> = {}) => {
  const lossFnConfigV2 = Object.fromEntries(
    Object.entries(configV2).map(([key, value]) => [
      key,
      create(LossConfigValueSchema, { value: typeof value === 'number' ? { case: 'number', value } : { case: 'text', value } }),
    ]),
  );
  const request = create(ForwardBackwardRequestSchema, { lossFn: 'ppo', data: [policy], lossFnConfig: { ...config }, lossFnConfigV2 });
  return decodeForwardBackward(toBinary(ForwardBackwardRequestSchema, request), LIMITS).batch;
};

describe('ppo', () => {
  it.each([
    ['the defaults', {}, {}, 0.8, 1.2],
    ['both thresholds', { clip_low_threshold: 0.5, clip_high_threshold: 4 }, {}, 0.5, 4],
    ['one threshold', { clip_high_threshold: 1.28 }, {}, 0.8, 1.28],
    ['thresholds in the newer field', {}, { clip_low_threshold: 0, clip_high_threshold: 1 }, 0, 1],
    ['the newer field before the older', { clip_high_threshold: 2 }, { clip_high_threshold: 3 }, 0.8, 3],
  ])('takes %s', (_, config, configV2, clipLow, clipHigh) => {
    expect(ppo(config, configV2)).toMatchObject({ loss: 'ppo', clipLow, clipHigh, datums: [{ advantages: Float32Array.of(0.5, -0.5) }] });
  });

  it.each([
    ['an unknown key', { kl_coeff: 1 }, {}, "loss_fn_config: unknown key 'kl_coeff'"],
    ['a text', {}, { clip_low_threshold: 'low' }, 'loss_fn_config.clip_low_threshold: must be a number'],
    ['thresholds in the wrong order', { clip_low_threshold: 1.5 }, {}, 'clip_low_threshold 1.5 and clip_high_threshold 1.2'],
    ['a threshold that is no number', { clip_high_threshold: Number.NaN }, {}, 'clip_high_threshold NaN'],
  ])('refuses %s', (_, config, configV2, message) => {
    expect(() => ppo(config, configV2)).toThrow(UserError);
    expect(() => ppo(config, configV2)).toThrow(message);
  });
});

it('cross_entropy takes copies of one sequence with targets and fractional weights of their own', () => {
  const data = [
    datum([5, 6, 7], [6, 9, 10], { weights: [0, 0.75, 0.5] }),
    datum([5, 6, 7], [6, 8, 127], { weights: [0, 0.25, 0.5] }),
    datum([5, 6, 7], [6, 7, 0], { weights: [0, 0, 0] }),
  ];
  const body = toBinary(ForwardBackwardRequestSchema, create(ForwardBackwardRequestSchema, { lossFn: 'cross_entropy', data }));
  const tokens = Int32Array.of(5, 6, 7);
  expect(decodeForwardBackward(body, LIMITS)).toEqual({
    forwardOnly: false,
    batch: {
      loss: 'cross_entropy',
      datums: [
        { tokens, targets: Int32Array.of(6, 9, 10), weights: Float32Array.of(0, 0.75, 0.5) },
        { tokens, targets: Int32Array.of(6, 8, 127), weights: Float32Array.of(0, 0.25, 0.5) },
        { tokens, targets: Int32Array.of(6, 7, 0), weights: new Float32Array(3) },
      ],
    },
  });
});
