import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BadRequest, BillingPaused, RetryLater, TinkerClient, TrainingStateUnknown } from '../index.ts';
import type { StatePath } from '../paths.ts';
import { FakeService } from '../testing/fake-service.ts';
import { decodeForwardBackwardRequest } from '../wire/index.ts';

const MODEL = { baseModel: 'stillroom/tiny-student', rank: 8 };
const STATE = 'tinker://run/weights/step-1' as StatePath;

let service: FakeService;
let client: TinkerClient;

async function connect(): Promise<TinkerClient> {
  return TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', noProgressMs: 300 });
}

beforeEach(async () => {
  service = await FakeService.start();
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

function rows(firstToken: number, length = 3) {
  const tokens = new Int32Array(length).fill(firstToken);
  return { modelInput: tokens, targetTokens: tokens, logprobs: new Float32Array(length), advantages: new Float32Array(length) };
}

function lossRequests() {
  return service.to('forward_backward').map(({ bytes }) => decodeForwardBackwardRequest(bytes));
}

describe('one chunk', () => {
  beforeEach(async () => {
    client = await connect();
  });

  test('after a failure, later calls are not sent and say so; a new client with the number from before goes on', async () => {
    service.script('forward_backward', { status: 402, json: { detail: 'no funds' }, headers: { 'x-request-id': 'r-1' } });
    const training = client.training('m', { nextSeqId: 4 });
    const first = await training.forwardBackward([rows(1)], 'ppo').catch((error: unknown) => error);
    const later = await training.optimStep({ learningRate: 0.1 }).catch((error: unknown) => error);
    expect(first).toBeInstanceOf(BillingPaused);
    expect(later).toBeInstanceOf(BillingPaused);
    expect(later).toMatchObject({ status: 402, requestId: 'r-1', cause: first });
    expect(String(later)).toContain('forward_backward: not sent: an earlier call of this client failed: the service asks for payment');
    expect(service.to('optim_step')).toEqual([]);
    await client.training('m', { nextSeqId: 4 }).forwardBackward([rows(1)], 'ppo');
    expect(lossRequests().at(-1)?.seqId).toBe(4);
  });

  test.each([
    ['rows of unequal length', { ...rows(1), advantages: new Float32Array(2) }, 'advantages has 2 entries for 3 input tokens'],
    [
      'a tensor that is not of its shape',
      { modelInput: Int32Array.of(1), lossFnInputs: { weights: { values: new Float32Array(3), shape: [2, 2] } } },
      'holds 3 values',
    ],
  ])('%s is a bad request, and takes no number', async (_, datum, message) => {
    const training = client.training('m', { nextSeqId: 1 });
    const error = await training.forwardBackward([datum], 'ppo').catch((error: unknown) => error);
    expect(error).toBeInstanceOf(BadRequest);
    expect(String(error)).toContain(message);
    expect([training.nextSeqId, lossRequests()]).toEqual([1, []]);
  });

  test('a step: numbers in order, results typed', async () => {
    const { modelId, nextSeqId } = await client.createModel({ ...MODEL, seed: 1 });
    const training = client.training(modelId, { nextSeqId });
    const backward = training.forwardBackward([rows(5), rows(6)], 'importance_sampling');
    const update = training.optimStep({ learningRate: 0.01 });
    expect(training.nextSeqId).toBe(3);
    expect(await backward).toMatchObject({
      metrics: { 'loss:sum': 1 },
      lossFnOutputs: [{ logprobs: { values: Float32Array.of(5, 5, 5) } }, { logprobs: { values: Float32Array.of(6, 6, 6) } }],
    });
    expect((await update).metrics).toEqual({ 'grad_norm:max': 0.5 });
    expect(await training.saveState('a', { ttlSeconds: 3600 })).toBe('tinker://run/weights/a');
    expect(await training.saveForSampler('b')).toBe('tinker://run/sampler_weights/b');
    await training.loadState(STATE, { optimizer: true });
    expect(training.nextSeqId).toBe(6);

    expect(lossRequests()[0]).toMatchObject({ modelId: 'sess:train:0', seqId: 1, lossFn: 'importance_sampling', forwardOnly: false });
    const adam_params = { learning_rate: 0.01, beta1: 0.9, beta2: 0.95, eps: 1e-12, weight_decay: 0, grad_clip_norm: 0 };
    expect(service.to('optim_step')[0]?.json).toEqual({ model_id: modelId, seq_id: 2, type: 'optim_step', adam_params });
    expect(service.to('save_weights')[0]?.json).toMatchObject({ path: 'a', seq_id: 3, ttl_seconds: 3600, overwrite: false });
    expect(service.to('save_weights_for_sampler')[0]?.json).toMatchObject({ path: 'b', seq_id: 4, kind: 'snapshot' });
    expect(service.to('load_weights')[0]?.json).toMatchObject({ path: STATE, seq_id: 5, optimizer: true });
  });

  test('a repeat after a crash takes the same numbers', async () => {
    for (let attempt = 0; attempt < 2; attempt++) {
      const training = client.training('m', { nextSeqId: 7 });
      await training.forwardBackward([rows(5)], 'cross_entropy');
      await training.optimStep({ learningRate: 1 });
    }
    expect(lossRequests().map(({ seqId }) => seqId)).toEqual([7, 7]);
    expect(service.to('optim_step').map(({ json }) => json.seq_id)).toEqual([8, 8]);
  });

  test('forward leaves gradients alone and takes a number', async () => {
    const training = client.training('m', { nextSeqId: 1 });
    await training.forward([rows(5)], 'ppo', { lossConfig: { clip_low_threshold: 0.8 } });
    expect(lossRequests()[0]).toMatchObject({ forwardOnly: true, lossFnConfig: { clip_low_threshold: 0.8 } });
    expect(service.to('retrieve_future')[0]?.headers['x-tinker-request-type']).toBe('Forward');
  });

  test('a failure is final for this object: later calls fail alike and send nothing', async () => {
    service.script('forward_backward', { status: 402 });
    const training = client.training('m', { nextSeqId: 1 });
    const calls = [training.forwardBackward([rows(5)], 'ppo'), training.optimStep({ learningRate: 1 })];
    for (const outcome of await Promise.allSettled(calls)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(BillingPaused) });
    }
    await expect(training.saveState('a')).rejects.toThrow(BillingPaused);
    expect(service.to('optim_step')).toHaveLength(0);
  });

  test.each([404, 410])('%i on the result: nobody knows the state', async (status) => {
    service.script('retrieve_future', { status });
    const training = client.training('m', { nextSeqId: 1 });
    await expect(training.forwardBackward([rows(5)], 'ppo')).rejects.toThrow(TrainingStateUnknown);
    expect(service.to('forward_backward')).toHaveLength(1);
  });

  test('an update that failed on the server', async () => {
    service.script('retrieve_future', { json: { error: 'out of memory', category: 'server' } });
    const training = client.training('m', { nextSeqId: 1 });
    await expect(training.optimStep({ learningRate: 1 })).rejects.toThrow(TrainingStateUnknown);
  });

  test('a bad batch of one chunk is just a bad request', async () => {
    service.script('retrieve_future', { json: { error: 'unknown key', category: 'user' } });
    const training = client.training('m', { nextSeqId: 1 });
    await expect(training.forwardBackward([rows(5)], 'ppo')).rejects.toThrow(BadRequest);
  });

  test('results for other datums than were sent', async () => {
    service.script('retrieve_future', { json: { loss_fn_output_type: 't', loss_fn_outputs: [], metrics: {} } });
    await expect(client.training('m', { nextSeqId: 1 }).forwardBackward([rows(5)], 'ppo')).rejects.toThrow(TrainingStateUnknown);
  });

  test('an older server’s JSON result', async () => {
    const logprobs = { data: [-1, -2, -3], dtype: 'float32', shape: [3] };
    service.script('retrieve_future', { json: { loss_fn_output_type: 't', loss_fn_outputs: [{ logprobs }], metrics: { 'loss:sum': 2 } } });
    const output = await client.training('m', { nextSeqId: 1 }).forwardBackward([rows(5)], 'ppo');
    expect(output.lossFnOutputs).toEqual([{ logprobs: { values: Float32Array.of(-1, -2, -3), shape: [3] } }]);
  });

  test('unequal lists, an empty batch and a number below 1 are refused before anything is sent', async () => {
    const training = client.training('m', { nextSeqId: 1 });
    await expect(training.forwardBackward([{ ...rows(5), logprobs: new Float32Array(2) }], 'ppo')).rejects.toThrow(/logprobs/);
    await expect(training.forwardBackward([], 'ppo')).rejects.toThrow(BadRequest);
    expect(training.nextSeqId).toBe(1);
    expect(() => client.training('m', { nextSeqId: 0 })).toThrow(BadRequest);
  });
});

describe('several chunks', () => {
  beforeEach(async () => {
    service.script('client/config', { json: { fwdbwd_max_chunk_len: 2 } });
    client = await connect();
  });

  test('the first goes last, outputs come in order, metrics are joined', async () => {
    const training = client.training('m', { nextSeqId: 3 });
    const output = await training.forwardBackward(
      [1, 2, 3, 4, 5].map((token) => rows(token)),
      'ppo',
    );
    expect(lossRequests().at(-1)?.seqId).toBe(3);
    expect(
      lossRequests()
        .map(({ seqId }) => seqId)
        .sort(),
    ).toEqual([3, 4, 5]);
    expect(output.lossFnOutputs.map(({ logprobs }) => logprobs?.values[0])).toEqual([1, 2, 3, 4, 5]);
    expect(output.metrics).toEqual({ 'loss:sum': 12 });
    expect(training.nextSeqId).toBe(6);
  });

  test('one chunk judged bad leaves an unknown state', async () => {
    service.script('forward_backward', { status: 422, json: { detail: 'bad key' } });
    const training = client.training('m', { nextSeqId: 1 });
    const error = await training
      .forwardBackward(
        [1, 2, 3].map((token) => rows(token)),
        'ppo',
      )
      .catch((caught) => caught);
    expect(error).toBeInstanceOf(TrainingStateUnknown);
    expect(error).toMatchObject({ status: 422, message: expect.stringContaining('bad key') });
  });

  test('a service that goes away leaves a call that may be repeated', async () => {
    const training = client.training('m', { nextSeqId: 1 });
    await service.stop();
    await expect(
      training.forwardBackward(
        [1, 2, 3].map((token) => rows(token)),
        'ppo',
      ),
    ).rejects.toThrow(RetryLater);
  });
});

describe('models from saved state', () => {
  beforeEach(async () => {
    client = await connect();
  });

  test('in one call', async () => {
    const made = await client.createModelFromState(STATE, { ...MODEL, optimizer: true });
    expect(made).toEqual({ modelId: 'sess:train:0', nextSeqId: 1 });
    expect(service.to('create_model')).toHaveLength(0);
  });

  test('on a server that only knows the older form', async () => {
    service.script('load_weights', { status: 422 });
    const made = await client.createModelFromState(STATE, { ...MODEL, optimizer: false });
    expect(made).toEqual({ modelId: 'sess:train:0', nextSeqId: 2 });
    expect(service.to('load_weights')[1]?.json).toEqual({
      model_id: 'sess:train:0',
      seq_id: 1,
      path: STATE,
      optimizer: false,
      type: 'load_weights',
    });
  });
});
