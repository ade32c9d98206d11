import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  BadRequest,
  type CallFate,
  CredentialRefused,
  callFate,
  ofUnsentCall,
  RetryLater,
  type SamplerPath,
  TinkerClient,
} from './index.ts';
import { FakeClock } from './testing/fake-clock.ts';
import { FakeService, type Reply } from './testing/fake-service.ts';

/** What a failed call came to: the one map that books of calls, journals and waits for payment go by. */

const PROMPT = Int32Array.of(36, 32);
const SAMPLE = { prompt: PROMPT, maxTokens: 5, temperature: 1, stopTokens: [10] };
const LOSS_ROWS = { modelInput: PROMPT, targetTokens: PROMPT, weights: Float32Array.of(1, 1) };

let service: FakeService;
let client: TinkerClient;
beforeEach(async () => {
  service = await FakeService.start();
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key', clock: new FakeClock() });
});
afterEach(async () => {
  await client.close();
  await service.stop();
});

type Calling = { readonly submit: string; readonly make: () => Promise<unknown> };
const CALLS: Readonly<Record<string, Calling>> = {
  'a sample': { submit: 'asample', make: async () => (await client.sampler({ baseModel: 'm' })).sample(SAMPLE) },
  'a score': { submit: 'asample', make: async () => (await client.sampler({ baseModel: 'm' })).promptLogprobs(PROMPT) },
  gradients: {
    submit: 'forward_backward',
    make: () => client.training('m', { nextSeqId: 1 }).submitForwardBackward([LOSS_ROWS], 'cross_entropy').then(resultOf),
  },
  'an update': { submit: 'optim_step', make: () => client.training('m', { nextSeqId: 1 }).submitOptimStep(ADAM).then(resultOf) },
};
const ADAM = { learningRate: 1e-3 };
const resultOf = (call: { result(): Promise<unknown> }) => call.result();

const fateOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: unknown) => callFate(error),
  );
const of = (status: number): Reply => ({ status, json: { detail: 'because' } });
const without = (reply: Reply): Reply[] => Array.from({ length: 200 }, () => reply);

describe.each(Object.entries(CALLS))('%s', (_name, { submit, make }) => {
  const isSample = submit === 'asample';

  test.each<[string, readonly Reply[], CallFate]>([
    ['400', [of(400)], 'refused'],
    ['401', [of(401)], 'refused'],
    ['403', [of(403)], 'refused'],
    ['413', [of(413)], 'refused'],
    ['422', [of(422)], 'refused'],
    ['501', [of(501)], 'refused'],
    ['402', [of(402)], 'unpaid'],
    ['429, to come back in days', [{ status: 429, json: {}, headers: { 'retry-after': '100000' } }], 'refused'],
    ['500 without end', without(of(500)), 'unknown'],
    ['no answer at all', without('drop'), 'unknown'],
    // A sample that is made again may get another number; a training call has its own, which is run once.
    ['402 after no answer', ['drop', of(402)], isSample ? 'unknown' : 'unpaid'],
    ['422 after no answer', [of(500), of(422)], isSample ? 'unknown' : 'refused'],
  ])('answered %s when it is submitted', async (_, replies, fate) => {
    service.script(submit, ...replies);
    expect(await fateOf(make())).toBe(fate);
  });

  test.each<[string, readonly Reply[], CallFate]>([
    ['402', [of(402)], 'standing'],
    ['401', [of(401)], 'unknown'],
    ['422', [of(422)], 'unknown'],
    ['500 without end', without(of(500)), 'unknown'],
    ['a failure of the request', [{ json: { error: 'no', category: 'user' } }], 'unknown'],
    ['a failure of the service', [{ json: { error: 'no', category: 'server' } }], 'unknown'],
    ['what is no result', [{ json: 7 }], 'unknown'],
  ])('answered %s when its result is asked for', async (_, replies, fate) => {
    service.script('retrieve_future', ...replies);
    expect(await fateOf(make())).toBe(fate);
    expect(service.to(submit)).toHaveLength(1);
  });
});

describe('a sample that the service lost once', () => {
  test.each<[string, Reply, CallFate]>([
    ['422', of(422), 'unknown'],
    ['402', of(402), 'unknown'],
  ])('may have been done, also where the next submission is answered %s', async (_, reply, fate) => {
    service.script('retrieve_future', of(410));
    service.script('asample', { json: { request_id: 'first' } }, reply);
    expect(await fateOf((await client.sampler({ baseModel: 'm' })).sample(SAMPLE))).toBe(fate);
    expect(service.to('asample')).toHaveLength(2);
  });

  test('still stands where the wait for the next one wants payment', async () => {
    service.script('retrieve_future', of(410), of(402));
    expect(await fateOf((await client.sampler({ baseModel: 'm' })).sample(SAMPLE))).toBe('standing');
  });
});

test('a sample whose session is gone, and no other can be had, was not sent', async () => {
  const sampler = await client.sampler({ baseModel: 'm' });
  service.script('asample', of(404));
  service.script('create_sampling_session', ...without(of(500)));
  expect(await fateOf(sampler.sample(SAMPLE))).toBe('unsent');
});

test('what this client itself refuses is not sent, nor is what comes after a failed call', async () => {
  const training = client.training('m', { nextSeqId: 1 });
  expect(await fateOf(training.loadState('tinker://r/sampler_weights/x' as never, { optimizer: true }))).toBe('unsent');
  expect(await fateOf(training.submitForwardBackward([], 'cross_entropy'))).toBe('unsent');
  expect(await fateOf(client.sampler({ samplerPath: 'tinker://r/weights/x' as SamplerPath }))).toBe('unsent');
  service.script('optim_step', ...without(of(500)));
  const failing = training.submitOptimStep(ADAM);
  const later = training.submitOptimStep(ADAM);
  expect([await fateOf(failing), await fateOf(later)]).toEqual(['unknown', 'unsent']);
});

test.each<[string, unknown, CallFate]>([
  ['a credential that cannot be had', new CredentialRefused('expired', { call: 'connect' }), 'unsent'],
  ['a request that cannot be sent', new BadRequest('a bad header', { call: 'asample' }), 'unsent'],
  ['no session', ofUnsentCall(new RetryLater('down', { call: 'create_session' })), 'unsent'],
  ['a service that is silent', new RetryLater('down', { call: 'asample' }), 'unknown'],
  ['an abort', new Error('the trial ended'), 'unknown'],
])('%s', (_, error, fate) => {
  expect(callFate(error)).toBe(fate);
});

describe('a sample that stands', () => {
  test('is waited for by its name once it is paid, by another client and from another session, and is not made again', async () => {
    service.script('retrieve_future', of(402));
    const error = await (await client.sampler({ baseModel: 'm' })).sample(SAMPLE).catch((error: unknown) => error);
    const { requestId } = error as BadRequest;
    await using other = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
    const sampler = await other.sampler({ baseModel: 'm' });
    await sampler.sample({ ...SAMPLE, standing: String(requestId) });
    expect(service.to('asample')).toHaveLength(1);
    expect(service.to('retrieve_future').map(({ json }) => json.request_id)).toEqual([requestId, requestId]);
    await sampler.sample(SAMPLE);
    expect(service.to('asample')).toHaveLength(2);
  });

  test('by the same client too, once', async () => {
    service.script('retrieve_future', of(402));
    const sampler = await client.sampler({ baseModel: 'm' });
    const error = await sampler.sample(SAMPLE).catch((error: unknown) => error);
    await sampler.sample({ ...SAMPLE, standing: String((error as BadRequest).requestId) });
    expect(service.to('asample')).toHaveLength(1);
    await sampler.sample(SAMPLE);
    expect(service.to('asample')).toHaveLength(2);
  });

  test('and was lost meanwhile is made again, and said to have been', async () => {
    service.script('retrieve_future', of(410));
    const sample = await (await client.sampler({ baseModel: 'm' })).sample({ ...SAMPLE, standing: 'gone' });
    expect(sample.resubmissions).toBe(1);
    expect(service.to('asample')).toHaveLength(1);
  });
});
