import { describe, expect, test } from 'vitest';
import { jsonForwardBackwardBody, type TrainingDatum } from './index.ts';

const base = { modelId: 'm "1"', seqId: 3, lossFn: 'ppo', lossFnConfig: {}, forwardOnly: false };
const parsed = (datums: readonly TrainingDatum[], more = {}) => JSON.parse(jsonForwardBackwardBody({ ...base, ...more, datums }));

describe('JSON bodies of before protobuf', () => {
  test('forward and forward_backward, with the loss config when there is one', () => {
    const lossFnConfig = { clip_low_threshold: 0.8, loss_id: 'é"' };
    expect(parsed([], { lossFnConfig })).toEqual({
      forward_backward_input: { data: [], loss_fn: 'ppo', loss_fn_config: lossFnConfig },
      model_id: 'm "1"',
      seq_id: 3,
    });
    expect(parsed([], { forwardOnly: true })).toEqual({ forward_input: { data: [], loss_fn: 'ppo' }, model_id: 'm "1"', seq_id: 3 });
  });

  test('every kind of chunk and tensor', () => {
    const pool = Uint8Array.of(9, 1, 2, 9);
    const [datum] = parsed([
      {
        modelInput: [
          { type: 'encoded_text', tokens: Int32Array.of(1, -2) },
          { type: 'image', data: pool.subarray(1, 3), format: 'png', expectedTokens: 4 },
          { type: 'image', data: new Uint8Array(0), format: 'jpeg' },
          { type: 'dmel', dmel: pool.subarray(0, 1) },
        ],
        lossFnInputs: {
          target_tokens: {
            values: Int32Array.of(7),
            shape: [2, 9],
            sparse: { crowIndices: Int32Array.of(0, 0, 1), colIndices: Int32Array.of(8) },
          },
          weights: Float32Array.of(0.1, -0),
          wide: BigInt64Array.of(2n ** 60n),
        },
      },
    ]).forward_backward_input.data;
    expect(datum.model_input.chunks).toEqual([
      { tokens: [1, -2], type: 'encoded_text' },
      { data: 'AQI=', format: 'png', expected_tokens: 4, type: 'image' },
      { data: '', format: 'jpeg', type: 'image' },
      { dmel: 'CQ==', type: 'dmel' },
    ]);
    expect(datum.loss_fn_inputs).toEqual({
      target_tokens: { data: [7], dtype: 'int64', shape: [2, 9], sparse_crow_indices: [0, 0, 1], sparse_col_indices: [8] },
      weights: { data: [Math.fround(0.1), 0], dtype: 'float32', shape: [2] },
      wide: { data: [2 ** 60], dtype: 'int64', shape: [1] },
    });
  });

  test('what JSON cannot carry is refused by name', () => {
    const modelInput = Int32Array.of(1);
    expect(() => parsed([{ modelInput, lossFnInputs: { logprobs: Float32Array.of(Number.NaN) } }])).toThrow(/datum 0, logprobs holds NaN/);
    expect(() => parsed([], { lossFnConfig: { beta: Number.POSITIVE_INFINITY } })).toThrow(/"beta" holds Infinity/);
    const spans = [{ type: 'sampled_tokens', sequenceId: 's', offset: 0, length: 1 }] as const;
    expect(() => parsed([{ modelInput, lossFnInputs: {}, modelInputSpans: spans, lossFnInputSpans: spans }])).toThrow(/provenance/);
  });
});
