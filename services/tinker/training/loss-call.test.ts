import { zstdDecompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BadRequest, RetryLater, ServiceFailed, TinkerError, TrainingStateUnknown } from '../errors.ts';
import { Caller } from '../http/caller.ts';
import { resolveConnection } from '../settings.ts';
import { FakeService } from '../testing/fake-service.ts';
import {
  decodeForwardBackwardRequest,
  encodeForwardBackwardOutput,
  type ForwardBackwardOutput,
  type TrainingDatum,
} from '../wire/index.ts';
import { type ChunkPolicy, LossCall } from './loss-call.ts';
import { retrieveLoss } from './loss-result.ts';
import { trainingDatum } from './training-datum.ts';

const LIMITS = { maxDatums: 2, maxBytes: 1e6, parallel: true };

let service: FakeService;
let caller: Caller;

beforeEach(async () => {
  service = await FakeService.start();
  caller = new Caller(resolveConnection({ baseUrl: service.url, apiKey: 'tml-key', noProgressMs: 200 }));
});

afterEach(async () => {
  await caller.close();
  await service.stop();
});

async function run(policy: Partial<ChunkPolicy>, datums: readonly TrainingDatum[], forwardOnly = false): Promise<ForwardBackwardOutput> {
  const order = { modelId: 'm', lossFn: 'ppo', lossFnConfig: {}, forwardOnly, signal: undefined };
  const call = new LossCall(caller, { ...LIMITS, ...policy }, datums, order);
  return retrieveLoss(caller, await call.submit(1), { targetCounts: call.targetCounts, forwardOnly }, undefined);
}

async function failureOf(work: Promise<unknown>): Promise<TinkerError> {
  const error = await work.then(
    () => null,
    (caught) => caught,
  );
  if (error instanceof TinkerError) return error;
  throw error ?? new Error('it did not fail');
}

function datum(length = 3): TrainingDatum {
  const tokens = new Int32Array(length).fill(5);
  return trainingDatum({ modelInput: tokens, targetTokens: tokens, logprobs: new Float32Array(length) });
}

describe('bodies', () => {
  test('zstd where the policy says so, under its own header', async () => {
    service.script('forward_backward', { json: { request_id: 'a' } });
    service.script('retrieve_future', { protobuf: result([-1, -2, -3]) });
    await run({ compress: true }, [datum()]);
    const [seen] = service.to('forward_backward');
    expect(seen?.headers).toMatchObject({ 'content-encoding': 'zstd', 'content-type': 'application/x-protobuf' });
    expect(decodeForwardBackwardRequest(zstdDecompressSync(seen?.bytes ?? Buffer.alloc(0))).datums).toHaveLength(1);
  });

  test.each([
    [false, 'forward_backward', 'forward_backward_input'],
    [true, 'forward', 'forward_input'],
  ])('JSON, forward only: %s', async (forwardOnly, path, input) => {
    service.script(path, { json: { request_id: 'a' } });
    service.script('retrieve_future', { protobuf: result([-1, -2, -3]) });
    await run({ bodies: 'json', compress: true }, [datum()], forwardOnly);
    const [seen] = service.to(path);
    expect(seen?.headers['content-type']).toBe('application/json');
    expect(seen?.headers['content-encoding']).toBeUndefined();
    expect(seen?.json).toMatchObject({ model_id: 'm', seq_id: 1, [input]: { loss_fn: 'ppo', data: [{}] } });
  });

  test('JSON that cannot carry a number is a bad request', async () => {
    const bad = { ...datum(), lossFnInputs: { weights: Float32Array.of(Number.NaN) } };
    expect(await failureOf(run({ bodies: 'json' }, [bad]))).toBeInstanceOf(BadRequest);
    expect(service.seen).toHaveLength(0);
  });

  test('two-dimensional inputs go sparse in protobuf only', async () => {
    const values = new Int32Array(30);
    const tall = { modelInput: Int32Array.of(1), lossFnInputs: { target_tokens: { values, shape: [1, 30] } } };
    service.script('forward_backward', { json: { request_id: 'a' } }, { json: { request_id: 'b' } });
    service.script('retrieve_future', { protobuf: result([-1]) }, { protobuf: result([-1]) });
    await run({}, [tall]);
    await run({ bodies: 'json' }, [tall]);
    const [protobuf, json] = service.to('forward_backward');
    expect(decodeForwardBackwardRequest(protobuf?.bytes ?? Buffer.alloc(0)).datums[0]?.lossFnInputs.target_tokens).toHaveProperty('sparse');
    expect(JSON.stringify(json?.json)).not.toContain('sparse');
  });
});

describe('a server that does not read protobuf', () => {
  test.each([
    [415, BadRequest],
    [422, BadRequest],
    [500, RetryLater],
  ])('%i to the first body: the error says what it may want', async (status, kind) => {
    service.script('forward_backward', ...Array.from({ length: 9 }, () => ({ status, json: { detail: 'no' } })));
    const error = await failureOf(run({}, [datum()]));
    expect(error).toBeInstanceOf(kind);
    expect(error).toMatchObject({ status, message: expect.stringMatching(/^forward_backward: the service .*no.*trainingBodies: 'json'/) });
  });

  test('later, and of JSON bodies, it does not', async () => {
    await run({}, [datum()]);
    service.script('forward_backward', { status: 422, json: { detail: 'bad key' } }, { status: 422, json: { detail: 'bad key' } });
    expect((await failureOf(run({}, [datum()]))).message).not.toContain('trainingBodies');
    expect((await failureOf(run({ bodies: 'json' }, [datum()]))).message).not.toContain('trainingBodies');
  });
});

describe('results', () => {
  const inf = Number.POSITIVE_INFINITY;

  test('NaN and infinities of protobuf come through', async () => {
    service.script('retrieve_future', { protobuf: result([Number.NaN, -inf, inf]) });
    expect((await run({}, [datum()])).lossFnOutputs[0]?.logprobs?.values).toEqual(Float32Array.of(Number.NaN, -inf, inf));
  });

  test('null and names for them in JSON too', async () => {
    const logprobs = { data: [null, '-Infinity', 'NaN'], dtype: 'float32', shape: [3] };
    const json = { loss_fn_output_type: 't', loss_fn_outputs: [{ logprobs }], metrics: { 'loss:sum': null, 'n:sum': 2 } };
    service.script('retrieve_future', { json });
    const output = await run({}, [datum()]);
    expect(output.lossFnOutputs[0]?.logprobs?.values).toEqual(Float32Array.of(Number.NaN, -inf, Number.NaN));
    expect(output.metrics).toEqual({ 'loss:sum': Number.NaN, 'n:sum': 2 });
  });

  test('and bare names for them, as Python writes JSON', async () => {
    const text = '{"loss_fn_outputs": [{"logprobs": {"data": [NaN, -Infinity, Infinity]}}], "metrics": {"loss:sum": NaN}}';
    service.script('retrieve_future', { text });
    const output = await run({}, [datum()]);
    expect(output.lossFnOutputs[0]?.logprobs?.values).toEqual(Float32Array.of(Number.NaN, -inf, inf));
    expect(output.metrics).toEqual({ 'loss:sum': Number.NaN });
  });

  test('integers of JSON results, wide ones as text', async () => {
    const ids = { data: [1, '9223372036854775807'], dtype: 'int64' };
    service.script('retrieve_future', { json: { loss_fn_outputs: [{ ids }] } });
    expect((await run({}, [datum()])).lossFnOutputs[0]?.ids).toEqual({ values: BigInt64Array.of(1n, 2n ** 63n - 1n), shape: [2] });
  });

  test('4 log-probabilities for 3 targets are refused with both numbers', async () => {
    service.script('retrieve_future', { protobuf: result([-1, -1, -1, -1]) });
    const error = await failureOf(run({}, [datum()]));
    expect(error).toBeInstanceOf(TrainingStateUnknown);
    expect(error.message).toMatch(/3 target tokens.*4 log-prob/);
    expect(error).toMatchObject({ call: 'ForwardBackward', requestId: expect.stringContaining('req-') });
  });

  test.each([true, false])(
    'that cannot be read: the gradient may have been added, a loss alone may be asked for again (forward only: %s)',
    async (forwardOnly) => {
      service.script('retrieve_future', { protobuf: Uint8Array.of(255) });
      expect(await failureOf(run({}, [datum()], forwardOnly))).toBeInstanceOf(forwardOnly ? ServiceFailed : TrainingStateUnknown);
    },
  );

  test('of one chunk of several: the others may have added their gradients', async () => {
    service.script('retrieve_future', { protobuf: result([-1]) });
    expect(await failureOf(run({}, [datum(), datum(), datum()]))).toBeInstanceOf(TrainingStateUnknown);
  });

  test.each([
    [[2], [1, 2, 3, 4, 5]],
    [[2], []],
    [
      [3, 2],
      [1, 2, 3],
    ],
  ])('a JSON tensor of shape %j with the values %j is no result', async (shape, data) => {
    service.script('retrieve_future', { json: { loss_fn_outputs: [{ logprobs: { data, shape } }] } });
    const error = await failureOf(run({}, [datum()], true));
    expect(error).toBeInstanceOf(ServiceFailed);
    expect(error.message).toMatch(`a tensor of shape [${shape.join(', ')}] holds ${data.length} values`);
  });

  test('text where a number belongs is no result', async () => {
    service.script('retrieve_future', { json: { loss_fn_outputs: [{ logprobs: { data: ['low'] } }] } });
    expect(await failureOf(run({}, [datum()]))).toBeInstanceOf(TrainingStateUnknown);
  });
});

describe('provenance of a datum', () => {
  const span = (length: number) => [{ type: 'sampled_tokens', sequenceId: 's', offset: 0, length }] as const;
  const full = { ...datum(), modelInputSpans: span(3), lossFnInputSpans: span(3) };

  test('tiles both fields or is refused', () => {
    expect(trainingDatum(full)).toBe(full);
    expect(() => trainingDatum({ ...full, modelInputSpans: span(2) })).toThrow(/modelInputSpans cover 2 positions of 3/);
    expect(() => trainingDatum({ ...full, lossFnInputSpans: span(4) })).toThrow(/lossFnInputSpans cover 4 positions of 3/);
    expect(() => trainingDatum({ ...datum(), modelInputSpans: span(3) })).toThrow(/or of neither/);
  });

  test('is not counted where an image takes its share of the input', () => {
    const image = { type: 'image', data: Uint8Array.of(1), format: 'png' } as const;
    const datum = { ...full, modelInput: [image], modelInputSpans: span(900) };
    expect(trainingDatum(datum)).toBe(datum);
  });
});

function result(logprobs: readonly number[]): Uint8Array {
  return encodeForwardBackwardOutput({
    lossFnOutputType: 'ArrayRecord',
    lossFnOutputs: [{ logprobs: Float32Array.from(logprobs) }],
    metrics: {},
  });
}
