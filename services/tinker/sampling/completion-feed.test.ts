import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BadRequest, type Sampler, TinkerClient } from '../index.ts';
import { FakeService, type Reply, sampleReply } from '../testing/fake-service.ts';

const REQUEST = { prompt: Int32Array.of(36, 32), maxTokens: 5, temperature: 1, stopTokens: [10] };

let service: FakeService;
let client: TinkerClient;
let sampler: Sampler;

/** Everything submitted is finished at the next poll; what came after the poll's cursor is told. */
const allFinished: Reply = ({ json }) => {
  const ids = service.to('asample').map((_, i) => `req-${i}`);
  const completions = ids.slice(Number(json.prev_cursor)).map((request_id) => ({ state: 'finished', request_id }));
  return { json: { completions, cursor: ids.length } };
};

beforeEach(async () => {
  service = await FakeService.start();
  service.script('client/config', { json: { sample_use_retrieve_futures: true } });
  service.usually('retrieve_futures', allFinished);
  client = await TinkerClient.connect({ baseUrl: service.url, apiKey: 'tml-key' });
  sampler = await client.sampler({ baseModel: 'm' });
});

afterEach(async () => {
  await client.close();
  await service.stop();
});

const told = () => service.to('retrieve_futures').flatMap(({ json }) => json.retrieved_request_ids as string[]);

async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 400 && !isSo(); i++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(isSo()).toBe(true);
}

describe('one poll for all samples of a session', () => {
  test('each result is fetched once, and the service is told', async () => {
    await Promise.all(Array.from({ length: 20 }, () => sampler.sample(REQUEST)));
    expect(service.to('retrieve_future')).toHaveLength(20);
    await until(() => told().length === 20);
    expect(new Set(told()).size).toBe(20);
  });

  test('nobody is asked while nobody waits', async () => {
    await sampler.sample(REQUEST);
    await until(() => told().length === 1);
    const { length } = service.to('retrieve_futures');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(service.to('retrieve_futures')).toHaveLength(length);
  });

  test('an empty poll is followed by the next', async () => {
    service.script('retrieve_futures', { json: { completions: [], cursor: 0 } });
    expect((await sampler.sample(REQUEST)).stop).toBe('stop');
  });

  test('a failed sample brings its error', async () => {
    service.script('retrieve_futures', { json: { completions: [{ state: 'failed', request_id: 'req-0' }], cursor: 1 } });
    service.script('retrieve_future', { json: { error: 'too long', category: 'user' } });
    await expect(sampler.sample(REQUEST)).rejects.toThrow(BadRequest);
  });

  test('an outage is waited out', async () => {
    service.script('retrieve_futures', { status: 503 }, 'drop');
    const startMs = performance.now();
    await sampler.sample(REQUEST);
    expect(performance.now() - startMs).toBeGreaterThan(1900);
  });

  test('what the service refuses for good fails those who wait', async () => {
    const refused = { status: 422, json: { detail: 'no' } };
    service.script('retrieve_futures', refused);
    await expect(sampler.sample(REQUEST)).rejects.toMatchObject({ name: 'BadRequest', status: 422 });
  });

  test('a lost sampling session is opened again', async () => {
    service.script('retrieve_futures', { status: 410 });
    await sampler.sample(REQUEST);
    expect(service.to('create_sampling_session')).toHaveLength(2);
  });

  test('an aborted wait ends at once and leaves the others', async () => {
    service.usually('retrieve_futures', 'hang');
    const controller = new AbortController();
    const sampling = sampler.sample({ ...REQUEST, signal: controller.signal });
    await until(() => service.to('retrieve_futures').length === 1);
    controller.abort(new Error('no'));
    await expect(sampling).rejects.toThrow('no');
    service.usually('retrieve_futures', allFinished);
    expect((await sampler.sample(REQUEST)).stop).toBe('stop');
  });

  test.each<[string, Reply]>([
    ['an empty object', { json: {} }],
    ['no content', { status: 204 }],
  ])('an acknowledgement may be answered with %s', async (_, reply) => {
    const acknowledged: Reply = ({ json }) => (json.timeout === 0 ? reply : allFinished);
    service.usually('retrieve_futures', acknowledged);
    await sampler.sample(REQUEST);
    await until(() => told().length === 1);
    await sampler.sample(REQUEST);
    await until(() => told().length === 2);
  });

  test('what an unanswered acknowledgement said is said again', async () => {
    let failures = 0;
    const isFirst = (ids: unknown) => Array.isArray(ids) && ids.length > 0 && failures++ === 0;
    service.usually('retrieve_futures', ({ json }) => (isFirst(json.retrieved_request_ids) ? { status: 500 } : allFinished));
    await sampler.sample(REQUEST);
    await until(() => failures === 1);
    await sampler.sample(REQUEST);
    await until(() => told().includes('req-1'));
    expect(told().filter((id) => id === 'req-0')).toHaveLength(2);
  });

  test('completions that nobody waits for are forgotten, and not taken for another sample', async () => {
    const completions = ['req-0', 'req-1'].map((request_id) => ({ state: 'finished', request_id }));
    service.script('retrieve_futures', { json: { completions, cursor: 2 } });
    await sampler.sample(REQUEST);
    await until(() => told().length === 1);
    service.usually('retrieve_futures', { json: { completions: [], cursor: 2 } });
    const second = sampler.sample({ ...REQUEST, signal: AbortSignal.timeout(200) });
    await expect(second).rejects.toThrow(DOMException);
    expect(told()).toEqual(['req-0']);
  });

  test('a completion that comes before its submission was answered is kept', async () => {
    service.script('asample', { json: { request_id: 'first' } }, { json: { request_id: 'early' }, delayMs: 150 });
    service.usually('retrieve_future', sampleReply());
    service.usually('retrieve_futures', 'hang');
    const completions = ['early', 'first'].map((request_id) => ({ state: 'finished', request_id }));
    service.script('retrieve_futures', { json: { completions, cursor: 2 }, delayMs: 50 });
    const samples = await Promise.all([sampler.sample(REQUEST), sampler.sample(REQUEST)]);
    expect(samples.map(({ stop }) => stop)).toEqual(['stop', 'stop']);
  });

  test('a service that does not hold the poll is asked ever more slowly', async () => {
    service.usually('retrieve_futures', { json: { completions: [], cursor: 0 } });
    const abandoned = new AbortController();
    const sampling = sampler.sample({ ...REQUEST, signal: abandoned.signal });
    await new Promise((resolve) => setTimeout(resolve, 700));
    abandoned.abort(new Error('no'));
    await expect(sampling).rejects.toThrow('no');
    expect(service.to('retrieve_futures').length).toBeLessThan(40);
  });

  test('the same completions again and again are no news: it is asked ever more slowly', async () => {
    const completions = [{ state: 'finished', request_id: 'older' }];
    let cursor = 0;
    service.usually('retrieve_futures', () => ({ json: { completions, cursor: cursor++ } }));
    const sampling = sampler.sample({ ...REQUEST, signal: AbortSignal.timeout(700) });
    await expect(sampling).rejects.toThrow(DOMException);
    expect(service.to('retrieve_futures').length).toBeLessThan(40);
  });

  test.each([404, 405, 501])('%i: a service without the call is asked for each sample by itself, from then on', async (status) => {
    service.usually('retrieve_futures', { status, json: { detail: 'Not Found' } });
    const others = await client.sampler({ baseModel: 'm' });
    const samples = await Promise.all([sampler, sampler, others].map((each) => each.sample(REQUEST)));
    expect(samples.map(({ stop }) => stop)).toEqual(['stop', 'stop', 'stop']);
    const { length } = service.to('retrieve_futures');
    await (await client.sampler({ baseModel: 'm' })).sample(REQUEST);
    await sampler.sample(REQUEST);
    expect(service.to('retrieve_futures')).toHaveLength(length);
    expect(service.to('create_sampling_session')).toHaveLength(3);
    expect(service.to('asample')).toHaveLength(5);
  });

  test('404 from a service that has the call is a lost sampling session', async () => {
    await sampler.sample(REQUEST);
    await until(() => told().length === 1);
    service.script('retrieve_futures', { status: 404 });
    await sampler.sample(REQUEST);
    expect(service.to('create_sampling_session')).toHaveLength(2);
  });

  test.each([
    ['together', 0],
    ['one after the completion of the other', 100],
  ])('two samples that are promised one id both get its result: %s', async (_, delayMs) => {
    const same = { json: { request_id: 'same' } };
    service.script('asample', same, delayMs === 0 ? same : { ...same, delayMs });
    service.usually('retrieve_future', sampleReply());
    service.usually('retrieve_futures', 'hang');
    const completions = [{ state: 'finished', request_id: 'same' }];
    service.script('retrieve_futures', { json: { completions, cursor: 1 }, delayMs: 50 });
    const samples = await Promise.all([sampler.sample(REQUEST), sampler.sample(REQUEST)]);
    expect(samples.map(({ stop }) => stop)).toEqual(['stop', 'stop']);
  });

  test('of two that wait for one id, the abort of one leaves the other', async () => {
    service.usually('asample', { json: { request_id: 'same' } });
    service.usually('retrieve_future', sampleReply());
    const completions = [{ state: 'finished', request_id: 'same' }];
    service.script('retrieve_futures', { json: { completions, cursor: 1 }, delayMs: 150 });
    const abandoned = sampler.sample({ ...REQUEST, signal: AbortSignal.timeout(50) });
    const [kept] = await Promise.all([sampler.sample(REQUEST), expect(abandoned).rejects.toThrow(DOMException)]);
    expect(kept.stop).toBe('stop');
  });

  test.each<[string, Reply, string]>([
    ['no JSON', { text: '<html>' }, 'ServiceFailed'],
    ['a wrong shape', { json: { completions: 5 } }, 'ServiceFailed'],
    ['a refusal', { status: 422, headers: { 'x-request-id': 'http-1' } }, 'BadRequest'],
  ])('%s: each of those who wait is told of its own request', async (_, reply, name) => {
    service.usually('retrieve_futures', reply);
    const failing = [sampler.sample(REQUEST), sampler.sample(REQUEST)];
    await expect(failing[0]).rejects.toMatchObject({ name, call: 'retrieve_futures', requestId: expect.stringMatching(/^req-[01]$/) });
    await expect(failing[1]).rejects.toMatchObject({ name, message: expect.stringMatching(/^retrieve_futures: (?!retrieve_futures)/) });
  });

  test('closing the client ends the wait', async () => {
    service.usually('retrieve_futures', 'hang');
    const sampling = sampler.sample(REQUEST);
    sampling.catch(() => {});
    await until(() => service.to('retrieve_futures').length === 1);
    await client.close();
    await expect(sampling).rejects.toThrow('this client was closed');
    await expect(sampler.sample(REQUEST)).rejects.toThrow('this client was closed');
  });
});
