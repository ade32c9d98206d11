import { zstdCompressSync } from 'node:zlib';
import { create, toBinary } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DatumSchema, DType, ForwardBackwardRequestSchema } from '../../../services/tinker/wire/tinker_public_pb.ts';
import { ServiceFixture } from '../testing/service-fixture.ts';

let fixture: ServiceFixture;
let model: string;
beforeEach(async () => {
  fixture = new ServiceFixture();
  const { session_id } = await fixture.ask('POST', 'create_session', {});
  const body = { session_id, model_seq_id: 0, base_model: 'base', lora_config: { rank: 4 } };
  model = String((await fixture.call('create_model', body)).model_id);
});
afterEach(() => fixture.remove());

const bytes = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array => new Uint8Array(array.buffer);
const tensor = (array: Float32Array | BigInt64Array, dtype: DType) => ({
  data: { case: 'dense' as const, value: bytes(array) },
  dtype,
  shape: [BigInt(array.length)],
});
/** A cross_entropy call; `order` is that of the map's entries. */
function request(seqId: number, length: number, weight = 1, order: 'written' | 'reversed' = 'written'): Uint8Array<ArrayBuffer> {
  const inputs = [
    ['target_tokens', tensor(new BigInt64Array(length).fill(3n), DType.INT64)],
    ['weights', tensor(new Float32Array(length).fill(weight), DType.FLOAT32)],
  ] as const;
  const datum = create(DatumSchema, {
    modelInput: [{ chunk: { case: 'encodedText', value: { tokens: bytes(new Int32Array(length).fill(2)) } } }],
    lossFnInputs: Object.fromEntries(order === 'written' ? inputs : inputs.toReversed()),
  });
  const message = create(ForwardBackwardRequestSchema, { modelId: model, seqId, lossFn: 'cross_entropy', data: [datum] });
  return toBinary(ForwardBackwardRequestSchema, message);
}
const PROTOBUF = { 'Content-Type': 'application/x-protobuf' };
const send = (body: Uint8Array<ArrayBuffer>, headers: object = {}) =>
  fixture.sendBytes('POST', 'forward_backward', body, { ...PROTOBUF, ...headers });
const compressed = (body: Uint8Array) => new Uint8Array(zstdCompressSync(body));

it('takes a repeat for one however it is encoded, and refuses other content under its number', async () => {
  const promise = { status: 200, body: { request_id: `${model}:1`, model_id: model } };
  expect(await send(request(1, 4))).toEqual(promise);
  expect(await send(compressed(request(1, 4)), { 'Content-Encoding': 'zstd' })).toEqual(promise);
  expect(await send(request(1, 4, 1, 'reversed'))).toEqual(promise);
  for (const other of [request(1, 5), request(1, 4, 0.5)]) {
    expect(await send(other)).toEqual({
      status: 400,
      body: { detail: expect.stringContaining(`${model}:1 was another forward_backward`) },
    });
  }
});

it('names both limits when a sequence is too long, and the number is used up', async () => {
  const refusal = { status: 400, body: { detail: "data[0].model_input: 193 tokens, but the model's context is 192" } };
  expect(await send(request(1, 193))).toEqual(refusal);
  expect(await send(request(1, 193))).toEqual(refusal);
  expect((await send(request(1, 192))).body.detail).toContain('conflict');
  expect((await send(request(2, 192))).status).toBe(200);
  const saved = await fixture.call('save_weights', { model_id: model, seq_id: 3, path: 'a', overwrite: false });
  expect(saved).toMatchObject({ path: `tinker://${model}/weights/a` });
});

it.each([
  ['JSON', '{}', { 'Content-Type': 'application/json' }, 415, 'takes a protobuf body (application/x-protobuf)'],
  ['no zstd', new Uint8Array([1, 2, 3]), { ...PROTOBUF, 'Content-Encoding': 'zstd' }, 400, 'not a zstd frame'],
  ['no message', new Uint8Array([0xff, 0xff, 0xff]), PROTOBUF, 400, 'not a ForwardBackwardRequest message'],
  [
    'a zstd frame that grows beyond all bounds',
    compressed(new Uint8Array(2 ** 26 + 1)),
    { ...PROTOBUF, 'Content-Encoding': 'zstd' },
    400,
    'at most 67108864',
  ],
] as const)('refuses a body that is %s', async (_, body, headers, status, message) => {
  const answer = await fixture.sendBytes('POST', 'forward_backward', body, headers);
  expect(answer).toEqual({ status, body: { detail: expect.stringContaining(message) } });
});
