import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BadRequest, CredentialRefused, RetryLater, SessionLost, SettingMissing, TinkerClient } from './index.ts';
import type { StatePath } from './paths.ts';
import { FakeService } from './testing/fake-service.ts';

let service: FakeService;

beforeEach(async () => {
  service = await FakeService.start();
  vi.stubEnv('TINKER_BASE_URL', '');
  vi.stubEnv('TINKER_API_KEY', '');
});

afterEach(async () => {
  vi.useRealTimers();
  vi.unstubAllEnvs();
  await service.stop();
});

function options() {
  return { baseUrl: `${service.url}/`, apiKey: 'tml-key', noProgressMs: 300 };
}

/** A token as the service gives it; only its claims are read. */
function jwt(name: string, lifeSeconds: number): string {
  const iat = Math.floor(Date.now() / 1000);
  return `${name}.${Buffer.from(JSON.stringify({ iat, exp: iat + lifeSeconds })).toString('base64url')}.sig`;
}

describe('settings', () => {
  test.each([
    ['TINKER_BASE_URL', { apiKey: 'tml-key' }],
    ['TINKER_API_KEY', { baseUrl: 'http://127.0.0.1:1' }],
    ['TINKER_BASE_URL', { apiKey: 'tml-key', baseUrl: 'not a url' }],
  ])('%s is asked for by name', async (variable, given) => {
    const error = await TinkerClient.connect(given).catch((caught) => caught);
    expect(error).toBeInstanceOf(SettingMissing);
    expect(error.message).toContain(variable);
  });

  test('the environment serves', async () => {
    vi.stubEnv('TINKER_BASE_URL', service.url);
    vi.stubEnv('TINKER_API_KEY', 'tml-env');
    await using client = await TinkerClient.connect();
    expect(client.sessionId).toBe('sess');
    expect(service.seen[0]?.headers['x-api-key']).toBe('tml-env');
  });
});

describe('the session', () => {
  test('opens in the protocol’s order and is finished', async () => {
    const client = await TinkerClient.connect({ ...options(), tags: ['a'], userMetadata: { run: 'r' } });
    await client.close('interrupted', 'by hand');
    expect(service.seen.map(({ path }) => path)).toEqual([
      'client/config',
      'client/dynamic_config',
      'create_session',
      'sessions/sess/finish',
    ]);
    expect(service.to('create_session')[0]?.json).toMatchObject({ tags: ['a'], user_metadata: { run: 'r' }, type: 'create_session' });
    expect(service.to('sessions/sess/finish')[0]?.json).toEqual({ reason: { type: 'interrupted' }, detail: 'by hand' });
  });

  test('a service without client/config is an older one', async () => {
    service.script('client/config', { status: 404 });
    await using client = await TinkerClient.connect(options());
    expect(client.sessionId).toBe('sess');
  });

  test('a service that is not up is waited for, then given up', async () => {
    await service.stop();
    await expect(TinkerClient.connect(options())).rejects.toThrow(RetryLater);
  });

  test('attach opens and finishes nothing', async () => {
    const client = await TinkerClient.attach({ ...options(), sessionId: 'other' });
    await client.sampler({ baseModel: 'm' });
    await client.close();
    expect(client.sessionId).toBe('other');
    expect(service.to('create_session')).toHaveLength(0);
    expect(service.to('sessions/other/finish')).toHaveLength(0);
    // Numbers that the session's first client has used would bring its samplers back.
    expect(service.to('create_sampling_session')[0]?.json.sampling_session_seq_id).toBeGreaterThanOrEqual(1_000_000);
  });

  test('can be left to others, and ended by any of them', async () => {
    const opener = await TinkerClient.connect(options());
    await opener.leave();
    expect(service.to('sessions/sess/finish')).toHaveLength(0);
    await using other = await TinkerClient.attach({ ...options(), sessionId: 'sess' });
    await other.endSession('sess', 'errored', 'replaced');
    expect(service.to('sessions/sess/finish')[0]?.json).toEqual({ reason: { type: 'errored' }, detail: 'replaced' });
  });

  test('attach to a session that is gone', async () => {
    service.script('session_heartbeat', { status: 410 });
    await expect(TinkerClient.attach({ ...options(), sessionId: 'other' })).rejects.toThrow(SessionLost);
  });

  test('attach to a session that the service does not know, and to a service that has no heartbeats', async () => {
    service.script(
      'session_heartbeat',
      { status: 404, json: { detail: "no session 'other'" } },
      { status: 404, json: { detail: 'Not Found' } },
    );
    await expect(TinkerClient.attach({ ...options(), sessionId: 'other' })).rejects.toThrow(SessionLost);
    await using client = await TinkerClient.attach({ ...options(), sessionId: 'other' });
    expect(client.sessionId).toBe('other');
  });

  test('beats every 10 s for its own and for adopted sessions, until the service ends it', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    await using client = await TinkerClient.connect(options());
    client.training('m', { nextSeqId: 1, sessionId: 'older' });
    service.script('session_heartbeat', { status: 405 }, { status: 405 }, { status: 410 }, { status: 410 });
    for (let beats = 2; beats <= 4; beats += 2) {
      vi.advanceTimersByTime(10_000);
      await vi.waitFor(() => expect(service.to('session_heartbeat')).toHaveLength(beats));
    }
    expect(new Set(service.to('session_heartbeat').map(({ json }) => json.session_id))).toEqual(new Set(['sess', 'older']));
    await vi.waitFor(() => expect(client.sampler({ baseModel: 'm' })).rejects.toThrow(SessionLost));
  });

  test('capabilities', async () => {
    const supported_models = [{ model_name: 'a', max_context_length: 192, trainable: true }, {}];
    service.script('get_server_capabilities', { json: { supported_models } });
    await using client = await TinkerClient.connect(options());
    expect((await client.capabilities()).supportedModels).toEqual([
      { modelName: 'a', maxContextLength: 192, isTrainable: true, isSampleable: null },
      { modelName: null, maxContextLength: null, isTrainable: null, isSampleable: null },
    ]);
  });
});

describe('tokens instead of keys', () => {
  test('the key buys a token; a refused token is replaced and the request replayed', async () => {
    const [first, second] = [jwt('first', 3600), jwt('second', 3600)];
    service.script('client/config', { json: { pjwt_auth_enabled: true } });
    service.script('auth/token', { json: { jwt: first } }, { json: { jwt: second } });
    const rejected = { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } };
    service.script('create_session', rejected);
    await using client = await TinkerClient.connect(options());
    expect(client.sessionId).toBe('sess');
    expect(service.to('auth/token').map(({ headers }) => headers['x-api-key'])).toEqual(['tml-key', 'tml-key']);
    expect(service.to('create_session').map(({ headers }) => headers['x-api-key'])).toEqual([first, second]);
  });

  test('a token close to its end is renewed first', async () => {
    const [short, long] = [jwt('short', 30), jwt('long', 3600)];
    service.script('client/config', { json: { pjwt_auth_enabled: true } });
    service.script('auth/token', { json: { jwt: short } }, { json: { jwt: long } });
    await using client = await TinkerClient.connect(options());
    expect(client.sessionId).toBe('sess');
    expect(service.to('create_session')[0]?.headers['x-api-key']).toBe(long);
  });

  test('a refused key', async () => {
    service.script('client/config', { json: { pjwt_auth_enabled: true } });
    service.script('auth/token', { status: 401 });
    await expect(TinkerClient.connect(options())).rejects.toThrow(CredentialRefused);
  });
});

describe('checkpoints', () => {
  const path = 'tinker://run/weights/a' as StatePath;

  test('list, delete, ttl', async () => {
    const checkpoint = { checkpoint_id: 'weights/a', checkpoint_type: 'training', tinker_path: path, time: null, size_bytes: 5 };
    service.script('training_runs/run/checkpoints', { json: { checkpoints: [checkpoint] } });
    service.script('training_runs/run/checkpoints/weights/a', { status: 204 });
    service.script('training_runs/run/checkpoints/weights/a/ttl', { status: 204 }, { status: 405 });
    await using client = await TinkerClient.connect(options());
    expect(await client.checkpoints.list('run')).toEqual([
      { id: 'weights/a', type: 'training', path, savedAt: null, sizeBytes: 5, isPublic: false, userMetadata: null, expiresAt: undefined },
    ]);
    await client.checkpoints.delete(path);
    expect(await client.checkpoints.setTtl(path, null)).toBe(true);
    expect(await client.checkpoints.setTtl(path, 3600)).toBe(false);
    await expect(client.checkpoints.delete(path)).rejects.toThrow(BadRequest);
    await expect(client.checkpoints.delete('tinker://run/checkpoints/a' as StatePath)).rejects.toThrow(BadRequest);
  });
});
