import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BadRequest, RestClient, ServiceFailed, SettingMissing } from '../index.ts';
import type { SamplerPath, StatePath } from '../paths.ts';
import { FakeService } from '../testing/fake-service.ts';

const STATE = 'tinker://run/weights/a' as StatePath;
const checkpoint = (name: string, more: object = {}) => ({
  checkpoint_id: `weights/${name}`,
  checkpoint_type: 'training',
  tinker_path: `tinker://run/weights/${name}`,
  time: null,
  ...more,
});
const run = (id: string) => ({ training_run_id: id, base_model: 'm', model_owner: 'me', is_lora: true, corrupted: false });

async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

let service: FakeService;
let rest: RestClient;

beforeEach(async () => {
  service = await FakeService.start();
  vi.stubEnv('TINKER_PROJECT_ID', '');
  rest = await RestClient.connect({ baseUrl: service.url, apiKey: 'tml-key', noProgressMs: 200 });
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rest.close();
  await service.stop();
});

test.each([404, 405, 501])('a service without the calls answers %d', async (status) => {
  service.usually('billing/usage/checkpoints/current', { status });
  service.usually('training_runs/run/checkpoints/weights/a/external_weights_urls', { status });
  const storage = await rest.billing.checkpointStorage().catch((error: unknown) => error);
  expect(storage).toBeInstanceOf(BadRequest);
  expect(storage).toMatchObject({ status, message: expect.stringContaining('this service has no billing calls') });
  await expect(rest.checkpoints.externalWeightsUrls(STATE)).rejects.toThrow(/no weights for download at .*, or does not offer downloads/);
});

test('no session is opened', () => {
  expect(service.seen.map(({ path }) => path)).toEqual(['client/config', 'client/dynamic_config']);
});

describe('listings', () => {
  test('runs of all pages, with nothing but what the protocol requires', async () => {
    const cursor = { offset: 0, limit: 20, total_count: 3 };
    const page = (ids: string[]) => ({ json: { training_runs: ids.map(run), cursor } });
    service.script('training_runs?limit=20&offset=0&access_scope=owned&project_id=p', page(['a', 'b']));
    service.script('training_runs?limit=20&offset=2&access_scope=owned&project_id=p', page(['c']));
    const runs = await collected(rest.trainingRuns.all({ projectId: 'p' }));
    expect(runs.map(({ id }) => id)).toEqual(['a', 'b', 'c']);
    expect(runs[0]).toMatchObject({ loraRank: null, lastRequestAt: null, lastCheckpoint: null, userMetadata: null });
  });

  test('checkpoints of all pages, where the service does not count them', async () => {
    const names = Array.from({ length: 100 }, (_, i) => `c${i}`);
    service.script('checkpoints?limit=100&offset=0', { json: { checkpoints: names.map((name) => checkpoint(name)) } });
    service.script('checkpoints?limit=100&offset=100', { json: { checkpoints: [checkpoint('last')] } });
    const all = await collected(rest.checkpoints.all());
    expect([all.length, all.at(-1)?.path]).toEqual([101, 'tinker://run/weights/last']);
  });
});

describe('checkpoints', () => {
  test('a save that did not persist is not found', async () => {
    const listed = { json: { checkpoints: [checkpoint('b')] } };
    service.script('training_runs/run/checkpoints', listed, listed);
    expect(await rest.checkpoints.find(STATE)).toBeNull();
    expect(await rest.checkpoints.find('tinker://run/weights/b' as StatePath)).toMatchObject({ id: 'weights/b' });
  });

  test('a sampler path of two parts is found, and deleted under its listed name', async () => {
    const path = 'tinker://run/s' as SamplerPath;
    const listed = checkpoint('s', { checkpoint_id: 's', tinker_path: 'tinker://run/sampler_weights/s' });
    service.script('training_runs/run/checkpoints', { json: { checkpoints: [listed] } });
    service.script('training_runs/run/checkpoints/sampler_weights/s', { status: 204 });
    expect(await rest.checkpoints.find(path)).toMatchObject({ id: 's' });
    await rest.checkpoints.delete(path);
  });

  test('of a run are listed to the last page', async () => {
    const page = (names: string[]) => ({ json: { checkpoints: names.map((name) => checkpoint(name)), cursor: { total_count: 3 } } });
    service.script('training_runs/run/checkpoints', page(['b', 'c']));
    service.script('training_runs/run/checkpoints?limit=100&offset=2', page(['a']));
    expect(await rest.checkpoints.find(STATE)).toMatchObject({ id: 'weights/a' });
  });

  test('of a run that the service has lost were not kept; one without lists cannot say', async () => {
    expect(await rest.checkpoints.assertListed(STATE)).toBe(false);
    service.usually('training_runs?limit=1&offset=0', { json: { training_runs: [] } });
    await expect(rest.checkpoints.assertListed(STATE)).rejects.toThrow(ServiceFailed);
    service.usually('training_runs/run', { json: { training_run_id: 'run' } });
    expect(await rest.checkpoints.assertListed(STATE)).toBe(false);
    service.script('training_runs/run/checkpoints', { status: 501 });
    expect(await rest.checkpoints.assertListed(STATE)).toBe(false);
  });

  test('many are looked up with one list a run; what a run without lists has is not said, and what a lost one had is not there', async () => {
    const sampler = 'tinker://run/sampler_weights/b' as SamplerPath;
    const listed = {
      json: { checkpoints: [checkpoint('a', { expires_at: '2026-01-02T00:00:00Z' }), checkpoint('c', { expires_at: null })] },
    };
    service.script('training_runs/run/checkpoints', listed);
    const elsewhere = ['tinker://other/weights/a', 'no-path'] as StatePath[];
    const found = await rest.checkpoints.lookUp([STATE, sampler, 'tinker://run/weights/c' as StatePath, ...elsewhere]);
    expect([...found].map(([path, it]) => [path, it?.expiresAt])).toEqual([
      [STATE, '2026-01-02T00:00:00Z'],
      [sampler, undefined],
      ['tinker://run/weights/c', null],
    ]);
    expect(found.get(sampler)).toBeNull();
    service.usually('training_runs?limit=1&offset=0', { json: { training_runs: [] } });
    expect(await rest.checkpoints.lookUp(elsewhere)).toEqual(new Map([[elsewhere[0], null]]));
  });

  test('in a form of the server’s own are found by their whole path', async () => {
    const path = 'tinker://run/checkpoints/a' as SamplerPath;
    const listed = { json: { checkpoints: [checkpoint('a', { tinker_path: path })] } };
    service.script('training_runs/run/checkpoints', listed, { json: { checkpoints: [checkpoint('a')] } });
    expect(await rest.checkpoints.assertListed(path)).toBe(true);
    await expect(rest.checkpoints.assertListed(path)).rejects.toThrow(ServiceFailed);
    expect(await rest.checkpoints.assertListed('elsewhere:a' as SamplerPath)).toBe(false);
  });

  test('one that a lost answer deleted is deleted; one that never was is not', async () => {
    service.script('training_runs/run/checkpoints/weights/a', 'drop', { status: 404 });
    await rest.checkpoints.delete(STATE);
    await expect(rest.checkpoints.delete(STATE)).rejects.toThrow(BadRequest);
  });

  test.each([404, 405])('%i to publish and ttl: not supported', async (status) => {
    service.script('training_runs/run/checkpoints/weights/a/publish', { status }, { status });
    service.script('training_runs/run/checkpoints/weights/a/ttl', { status });
    const answers = [
      await rest.checkpoints.publish(STATE),
      await rest.checkpoints.unpublish(STATE),
      await rest.checkpoints.setTtl(STATE, 3600),
    ];
    expect(answers).toEqual([false, false, false]);
  });
});

describe('billing', () => {
  const day = (n: number) => new Date(Date.UTC(2026, 0, n));

  test('events by type; an unknown type keeps what the service said', async () => {
    const event = (info: object) => ({ bucket_start: 's', bucket_end: 'e', event_info: info });
    const infos = [
      { type: 'training', token_count: 5 },
      { type: 'sampling_prefill', token_count: 6, cached: true },
      { type: 'sampling_sample', token_count: 7 },
      { type: 'checkpoint', count: 1 },
      { type: 'storage', gigabyte_hours: 0.5, free: false },
      { type: 'teleport', distance: 3 },
      { type: 'training', token_count: 'many' },
    ];
    const json = { data: infos.map(event), sessions: { s: { user_metadata: { k: 'v' } } } };
    service.script('billing/usage/events?starting_on=2026-01-01T00%3A00%3A00Z&ending_before=2026-01-15T00%3A00%3A00Z', { json });
    const usage = await rest.billing.usage({ startingOn: day(1), endingBefore: day(15) });
    expect(usage.events.map(({ info }) => info)).toEqual([
      { type: 'training', tokenCount: 5 },
      { type: 'sampling_prefill', tokenCount: 6, isCached: true },
      { type: 'sampling_sample', tokenCount: 7 },
      { type: 'checkpoint', count: 1 },
      { type: 'storage', gigabyteHours: 0.5, isFree: false },
      { type: 'other', raw: { type: 'teleport', distance: 3 } },
      { type: 'other', raw: { type: 'training', token_count: 'many' } },
    ]);
    expect(usage.sessions).toEqual({ s: { userMetadata: { k: 'v' } } });
  });

  test.each([
    ['longer than 14 days', day(1), new Date(day(15).getTime() + 1000)],
    ['empty', day(1), day(1)],
    ['backwards', day(2), day(1)],
    ['no time at all', new Date(Number.NaN), day(1)],
  ])('a window that is %s is refused here', async (_, startingOn, endingBefore) => {
    await expect(rest.billing.usage({ startingOn, endingBefore })).rejects.toThrow(BadRequest);
    expect(service.seen).toHaveLength(2);
  });
});

describe('copies', () => {
  beforeEach(() => service.script('copy_weights', { json: { tinker_path: 'tinker://other/weights/a' } }));

  test('to a model, with the token of who shared it', async () => {
    const copy = await rest.weights.copy(STATE, { model: { sessionId: 's', modelSeqId: 2 }, ttlSeconds: 3600, weightsAccessToken: 'tok' });
    expect(copy).toBe('tinker://other/weights/a');
    const [seen] = service.to('copy_weights');
    expect(seen?.json).toEqual({ source_path: STATE, session_id: 's', model_seq_id: 2, ttl_seconds: 3600 });
    expect(seen?.headers['x-tinker-weights-access-token']).toBe('tok');
  });

  test('to the project of TINKER_PROJECT_ID; without any, nowhere', async () => {
    await expect(rest.weights.copy(STATE)).rejects.toThrow(SettingMissing);
    vi.stubEnv('TINKER_PROJECT_ID', 'p');
    await rest.weights.copy(STATE);
    expect(service.to('copy_weights')[0]?.json).toEqual({ source_path: STATE, destination_project_id: 'p' });
  });
});

describe('the audit log', () => {
  const entries = [{ timestamp: 't', event: 'login', event_details: { from: 'here' } }];

  test('is followed to where it is kept, without the key on another host', async () => {
    await using other = await FakeService.start();
    other.script('log', { json: { entries } });
    service.script('audit?event_type=all&day=2026-01-02', { status: 307, headers: { location: `${other.url}/api/v1/log` } });
    expect(await rest.auditLog({ day: '2026-01-02' })).toEqual([{ timestamp: 't', event: 'login', details: { from: 'here' } }]);
    expect(other.to('log')[0]?.headers['x-api-key']).toBeUndefined();
  });

  test('but not round in circles', async () => {
    const back = { status: 302, headers: { location: 'audit?event_type=all' } };
    service.script('audit?event_type=all', back, back, { json: { entries } });
    await expect(rest.auditLog()).rejects.toThrow(BadRequest);
    expect(service.to('audit?event_type=all')[1]?.headers['x-api-key']).toBe('tml-key');
  });
});

describe('repeats', () => {
  test('of a copy carry one key: the service copies once', async () => {
    service.script('copy_weights', { status: 503, headers: { 'x-should-retry': 'false', 'retry-after-ms': '1' } }, 'drop', {
      json: { tinker_path: 'tinker://other/weights/a' },
    });
    expect(await rest.weights.copy(STATE, { projectId: 'p' })).toBe('tinker://other/weights/a');
    const keys = service.to('copy_weights').map(({ headers }) => headers['x-idempotency-key']);
    expect(keys).toHaveLength(3);
    expect(new Set(keys).size).toBe(1);
  });
});

test('the cursor of a search goes back as it came', async () => {
  const cursor = { last_created_at: '2026-01-01T00:00:00.000Z', last_session_id: 's1' };
  service.script('sessions/search', { json: { sessions: [{}], next_cursor: cursor } }, { json: { sessions: [], next_cursor: null } });
  const first = await rest.sessions.search({ limit: 1 });
  const second = await rest.sessions.search({ limit: 1, cursor: first.nextCursor });
  expect(service.to('sessions/search').map(({ json }) => json.cursor)).toEqual([undefined, cursor]);
  expect(second.nextCursor).toBeNull();
});
