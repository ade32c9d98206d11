import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeService, type Reply } from './fake-service.ts';
import { BadRequest, type Sampler, TinkerClient } from './index.ts';

const REQUEST = { prompt: Int32Array.of(36, 32), maxTokens: 5, temperature: 1, stopTokens: [10] };

let service: FakeService;
let client: TinkerClient;
let sampler: Sampler;
/** Ids that the service has finished and reported. */
let reported: Set<string>;

/** Everything submitted is finished at the next poll. */
const allFinished: Reply = () => {
  const ids = service.to('asample').map((_, i) => `req-${i}`);
  const completions = ids.filter((id) => !reported.has(id)).map((request_id) => ({ state: 'finished', request_id }));
  for (const { request_id } of completions) reported.add(request_id);
  return { json: { completions, cursor: reported.size } };
};

beforeEach(async () => {
  service = await FakeService.start();
  reported = new Set();
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
});
