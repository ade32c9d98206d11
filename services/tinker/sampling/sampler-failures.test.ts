import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  BadRequest,
  BillingPaused,
  CredentialRefused,
  RetryLater,
  type Sampler,
  ServiceFailed,
  SessionLost,
  TinkerClient,
  type WaitReport,
} from '../index.ts';
import type { SamplerPath } from '../paths.ts';
import { FakeService, type Reply, sampleReply } from '../testing/fake-service.ts';

const PROMPT = Int32Array.of(36, 32);
const REQUEST = { prompt: PROMPT, maxTokens: 5, temperature: 0.7, stopTokens: [10], seed: 3 };
const SOON = { 'retry-after-ms': '1' };

let service: FakeService;
let client: TinkerClient;
let sampler: Sampler;
let waits: WaitReport[];

beforeEach(async () => {
  service = await FakeService.start();
  waits = [];
  client = await TinkerClient.connect({
    baseUrl: service.url,
    apiKey: 'tml-key',
    noProgressMs: 300,
    onWait: (report) => waits.push(report),
  });
  sampler = await client.sampler({ baseModel: 'stillroom/tiny-student' });
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

const ONE_JSON = { tokens: [1], logprobs: [-1], stop_reason: 'stop' };

describe('waiting and repeating', () => {
  test('a pending future is polled again, the queue state is told', async () => {
    const pending = { type: 'try_again', request_id: 'req-0', queue_state: 'paused_capacity', queue_state_reason: 'busy' };
    service.script('retrieve_future', { json: pending }, { status: 408, json: pending });
    await sampler.sample(REQUEST);
    expect(service.to('asample')).toHaveLength(1);
    expect(service.to('retrieve_future')).toHaveLength(3);
    expect(waits.map(({ queueState, reason }) => [queueState, reason])).toContainEqual(['paused_capacity', 'busy']);
  });

  test.each<[string, Reply[]]>([
    ['429', [{ status: 429, headers: SOON }]],
    ['500', [{ status: 500, headers: SOON }]],
    ['503 on the poll', [{ status: 503 }]],
  ])('%s: the same seq_id again, as a new attempt', async (name, replies) => {
    service.script(name.includes('poll') ? 'retrieve_future' : 'asample', ...replies);
    await sampler.sample(REQUEST);
    const sent = service.to('asample');
    expect(new Set(sent.map(({ json }) => json.seq_id))).toEqual(new Set([0]));
    expect(new Set(sent.map(({ headers }) => headers['x-idempotency-key'])).size).toBe(sent.length);
    expect(service.to(name.includes('poll') ? 'retrieve_future' : 'asample')).toHaveLength(2);
  });

  test.each([404, 410])('%i: a lost sample is submitted anew with the next seq_id', async (status) => {
    service.script('retrieve_future', { status, json: { detail: 'gone' } });
    await sampler.sample(REQUEST);
    expect(service.to('asample').map(({ json }) => json.seq_id)).toEqual([0, 1]);
  });

  test('a lost sampling session is opened again, once for all calls', async () => {
    service.script('asample', { status: 404 }, { status: 404 });
    await Promise.all([sampler.sample(REQUEST), sampler.sample(REQUEST)]);
    expect(service.to('create_sampling_session')).toHaveLength(2);
    expect(service.to('asample').at(-1)?.json.sampling_session_id).toBe('sess:sample:1');
  });

  test('400 on a poll is believed the fourth time', async () => {
    const bad = { status: 400, json: { detail: 'no' } };
    service.script('retrieve_future', bad, bad, bad);
    await sampler.sample(REQUEST);
    service.script('retrieve_future', bad, bad, bad, bad);
    await expect(sampler.sample(REQUEST)).rejects.toThrow(BadRequest);
  });

  test('a restarted server on the same port is survived', async () => {
    await sampler.sample(REQUEST);
    const { port } = service;
    await service.stop();
    const sampling = sampler.sample(REQUEST);
    service = await FakeService.start(port);
    expect((await sampling).tokens).toEqual(Int32Array.of(7, 10));
  });

  test('a dropped connection is survived', async () => {
    service.script('asample', 'drop');
    service.script('retrieve_future', 'drop');
    await sampler.sample(REQUEST);
    expect(service.to('asample').map(({ json }) => json.seq_id)).toEqual([0, 0]);
  });

  test('an unreachable server is given up after noProgressMs', async () => {
    await service.stop();
    await expect(sampler.sample(REQUEST)).rejects.toThrow(RetryLater);
  });
});

describe('failures are named after what to do', () => {
  test.each([
    [401, CredentialRefused],
    [402, BillingPaused],
    [403, CredentialRefused],
    [413, BadRequest],
    [422, BadRequest],
    [501, BadRequest],
  ])('%i', async (status, errorClass) => {
    service.script('asample', { status, json: { detail: 'because' }, headers: { 'x-request-id': 'http-1' } });
    const error = await sampler.sample(REQUEST).catch((caught) => caught);
    expect(error).toBeInstanceOf(errorClass);
    expect(error).toMatchObject({ status, requestId: 'http-1', call: 'asample', message: expect.stringContaining('because') });
    expect(service.to('asample')).toHaveLength(1);
  });

  test('a sample that is refused for want of payment while it is polled is not bought again: the same request gets it, once', async () => {
    service.script('retrieve_future', { status: 402 });
    await expect(sampler.sample(REQUEST)).rejects.toThrow(BillingPaused);
    await sampler.sample({ ...REQUEST, seed: 4 });
    expect(service.to('asample')).toHaveLength(2);
    await sampler.sample(REQUEST);
    expect(service.to('asample')).toHaveLength(2);
    await sampler.sample(REQUEST);
    expect(service.to('asample')).toHaveLength(3);
  });

  test('402 on a poll names the future', async () => {
    service.script('retrieve_future', { status: 402, json: { detail: 'empty' } });
    await expect(sampler.sample(REQUEST)).rejects.toMatchObject({ name: 'BillingPaused', requestId: 'req-0' });
  });

  test.each([
    ['user', BadRequest],
    ['server', ServiceFailed],
    ['unknown', ServiceFailed],
  ])('a failed future of category %s', async (category, errorClass) => {
    service.script('retrieve_future', { json: { error: 'prompt too long', category } });
    await expect(sampler.sample(REQUEST)).rejects.toThrow(errorClass);
  });

  test('a session that is gone', async () => {
    service.script('asample', { status: 410 });
    service.script('create_sampling_session', { status: 410 });
    await expect(sampler.sample(REQUEST)).rejects.toThrow(SessionLost);
  });

  test('unknown weights in a living session are a bad request', async () => {
    service.script('create_sampling_session', { status: 404, json: { detail: 'no such weights' } });
    const opening = client.sampler({ samplerPath: 'tinker://r/sampler_weights/x' as SamplerPath });
    await expect(opening).rejects.toMatchObject({
      name: 'BadRequest',
      detail: 'no such weights',
      message: expect.not.stringContaining('session ('),
    });
  });

  test.each<[string, Reply]>([
    ['no JSON', { protobuf: Uint8Array.of(0xff, 0xff) }],
    ['a wrong shape', { json: { sequences: [{ tokens: ['x'], stop_reason: 'stop' }] } }],
    [
      'too few log-probabilities',
      sampleReply({ sequences: [{ tokens: Int32Array.of(1, 2), logprobs: Float32Array.of(-1), stopReason: 'stop', topk: null }] }),
    ],
    ['no sequence', sampleReply({ sequences: [] })],
    ['a token id above int32', { json: { sequences: [{ tokens: [1, 4_294_967_297], logprobs: [-1, -1], stop_reason: 'stop' }] } }],
    ['a likely token below int32', { json: { sequences: [{ ...ONE_JSON, topk_logprobs: [[[-2_147_483_649, -1]]] }] } }],
    ['a likely token that is no integer', { json: { sequences: [{ ...ONE_JSON, topk_logprobs: [[[1.5, -1]]] }] } }],
  ])('%s in the result', async (_, reply) => {
    service.script('retrieve_future', reply);
    await expect(sampler.sample(REQUEST)).rejects.toThrow(ServiceFailed);
  });
});

test.each([4_294_967_297, -2_147_483_649])('the error names a token id that is none: %i', async (id) => {
  service.script('retrieve_future', { json: { sequences: [{ ...ONE_JSON, tokens: [id] }] } });
  await expect(sampler.sample(REQUEST)).rejects.toMatchObject({ name: 'ServiceFailed', message: expect.stringContaining(` ${id} `) });
});

describe('aborts', () => {
  test.each<[string, () => void]>([
    ['while the service is silent', () => service.script('retrieve_future', 'hang')],
    ['in a pause', () => service.script('asample', { status: 429, headers: { 'retry-after': '30' } })],
  ])('%s', async (_, arrange) => {
    arrange();
    const controller = new AbortController();
    const sampling = sampler.sample({ ...REQUEST, signal: controller.signal });
    const reason = new Error('the trial ended');
    setTimeout(() => controller.abort(reason), 50);
    const startMs = performance.now();
    await expect(sampling).rejects.toBe(reason);
    expect(performance.now() - startMs).toBeLessThan(1000);
  });

  test('before anything was sent', async () => {
    await expect(sampler.sample({ ...REQUEST, signal: AbortSignal.abort(new Error('no')) })).rejects.toThrow('no');
    expect(service.to('asample')).toHaveLength(0);
  });
});

describe('numbers and sessions', () => {
  const numbers = () => service.to('asample').map(({ json }) => json.seq_id);

  test('a refused number is used again, one that may have been taken is not', async () => {
    service.script('asample', { status: 402 });
    await expect(sampler.sample(REQUEST)).rejects.toThrow(BillingPaused);
    service.script('asample', 'drop', { status: 402 });
    await expect(sampler.sample(REQUEST)).rejects.toThrow(BillingPaused);
    await sampler.sample(REQUEST);
    expect(numbers()).toEqual([0, 0, 0, 1]);
  });

  test('three calls that lose their session in one moment open one new session', async () => {
    const gone = { status: 404, delayMs: 50 };
    service.script('asample', gone, gone, gone);
    await Promise.all([1, 2, 3].map(() => sampler.sample(REQUEST)));
    expect(service.to('create_sampling_session')).toHaveLength(2);
  });

  test('an abort is obeyed while the session is opened again', async () => {
    service.script('asample', { status: 404 });
    service.usually('create_sampling_session', 'hang');
    const sampling = sampler.sample({ ...REQUEST, signal: AbortSignal.timeout(100) });
    await expect(sampling).rejects.toThrow(DOMException);
  });
});

test('a closed client wakes its calls, whatever they wait for', async () => {
  service.usually('asample', { status: 429, headers: { 'retry-after': '3600' } });
  const sampling = sampler.sample(REQUEST);
  sampling.catch(() => {});
  while (waits.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  await client.close();
  await expect(sampling).rejects.toMatchObject({ name: 'RetryLater', message: expect.stringContaining('this client was closed') });
});
