import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BadRequest, type ConnectionOptions, CredentialRefused, SettingMissing, statePath, TinkerClient } from '../index.ts';
import { FakeClock } from '../testing/fake-clock.ts';
import { FakeService, type Reply } from '../testing/fake-service.ts';

let service: FakeService;
let home: string;
const ENVIRONMENT = [
  'TINKER_API_KEY',
  'TINKER_BASE_URL',
  'TINKER_CREDENTIAL_CMD',
  'CLOUDFLARE_ACCESS_CLIENT_ID',
  'CLOUDFLARE_ACCESS_CLIENT_SECRET',
];

beforeEach(async () => {
  service = await FakeService.start();
  home = mkdtempSync(join(tmpdir(), 'tinker-home-'));
  for (const name of ENVIRONMENT) vi.stubEnv(name, '');
  vi.stubEnv('HOME', home);
});

afterEach(async () => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true });
  await service.stop();
});

const connect = (options: ConnectionOptions = {}) => TinkerClient.connect({ baseUrl: service.url, noProgressMs: 300, ...options });
const keysSent = () => service.seen.map(({ headers }) => headers['x-api-key']);

/** A token; only its claims are read. Lives from now for so long. */
function jwt(name: string, lifeSeconds: number, epochMs = Date.now()): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const iat = Math.floor(epochMs / 1000);
  return `${part({ alg: 'none' })}.${part({ sub: name, iat, exp: iat + lifeSeconds })}.sig`;
}

/** A command that counts its runs and prints one line. */
function counting(line: string): { command: string; runs: () => number } {
  const log = join(home, 'runs');
  writeFileSync(log, '');
  return { command: `echo run >> '${log}'; echo ' ${line} '`, runs: () => readFileSync(log, 'utf8').split('\n').length - 1 };
}

function storeKeys(content: unknown, mode = 0o600): void {
  mkdirSync(join(home, '.tinker'));
  const file = join(home, '.tinker', 'credentials.json');
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  chmodSync(file, mode);
}

describe('where the credential comes from', () => {
  test('a key goes before a command, a command before the file', async () => {
    storeKeys({ version: 1, default: 'a', keys: { a: 'tml-stored' } });
    const { command, runs } = counting('tml-printed');
    await (await connect({ apiKey: 'tml-key', credentialCmd: command })).close();
    expect([new Set(keysSent()), runs()]).toEqual([new Set(['tml-key']), 0]);
    service.seen.length = 0;
    await (await connect({ credentialCmd: command })).close();
    expect(new Set(keysSent())).toEqual(new Set(['tml-printed']));
    service.seen.length = 0;
    await (await connect()).close();
    expect(new Set(keysSent())).toEqual(new Set(['tml-stored']));
  });

  test('nothing at all', async () => {
    await expect(connect()).rejects.toThrow(SettingMissing);
  });

  test('the command runs for every use, once for those at the same time', async () => {
    const { command, runs } = counting('tml-printed');
    vi.stubEnv('TINKER_CREDENTIAL_CMD', command);
    const client = await connect();
    const before = runs();
    expect(before).toBe(service.seen.length);
    await Promise.all([1, 2, 3, 4].map(() => client.capabilities().catch(() => null)));
    expect(runs()).toBe(before + 1);
    await client.close();
  });

  test.each([
    ['fails', 'echo tml-secret; echo tml-secret >&2; exit 3', 'exit code 3'],
    ['prints nothing', 'true', 'printed nothing'],
    ['prints more than a key', 'echo tml-secret and more', 'spaces'],
  ])('a command that %s is named, its output is not', async (_, credentialCmd, words) => {
    const error = await connect({ credentialCmd }).catch((caught) => caught);
    expect(error).toBeInstanceOf(CredentialRefused);
    expect(error.message).toContain('TINKER_CREDENTIAL_CMD');
    expect(error.message).toContain(words);
    expect(JSON.stringify([error.message, error])).not.toContain('tml-secret');
  });

  test('a token that has expired is not sent', async () => {
    await expect(connect({ apiKey: jwt('old', -1) })).rejects.toThrow(/TINKER_API_KEY expired/);
    expect(service.seen).toHaveLength(0);
  });
});

describe('the credentials file', () => {
  test.each([
    ['a name for the key', { version: 1, default: 'a', keys: { a: { api_key: 'tml-stored', created: 1 } } }],
    ['further fields', { version: 1, default: 'a', keys: { a: 'tml-stored', b: 'tml-other' }, more: true }],
  ])('with %s', async (_, content) => {
    storeKeys(content);
    await (await connect()).close();
    expect(new Set(keysSent())).toEqual(new Set(['tml-stored']));
  });

  test.each<[string, unknown, number, string]>([
    ['readable by others', { version: 1, default: 'a', keys: { a: 'tml-stored' } }, 0o640, 'chmod 600'],
    ['of another version', { version: 2 }, 0o600, '"version": 1'],
    ['broken', '{', 0o600, '"version": 1'],
    ['without its default', { version: 1, default: 'b', keys: { a: 'tml-stored' } }, 0o600, 'default'],
  ])('%s', async (_, content, mode, words) => {
    storeKeys(content, mode);
    const error = await connect().catch((caught) => caught);
    expect(error).toBeInstanceOf(CredentialRefused);
    expect(error.message).toContain('credentials.json');
    expect(error.message).toContain(words);
    expect(error.message).not.toContain('tml-stored');
  });

  test('without a default is as good as none', async () => {
    storeKeys({ version: 1, keys: { a: 'tml-stored' } });
    await expect(connect()).rejects.toThrow(SettingMissing);
  });
});

describe('tokens', () => {
  const wanted = (more: object = {}): Reply => ({ json: { pjwt_auth_enabled: true, ...more } });

  test('are bought with the command’s credential where the service wants that', async () => {
    const token = jwt('bought', 3600);
    service.script('client/config', wanted({ credential_default_source: 'credential_cmd' }));
    service.script('auth/token', { json: { jwt: token } });
    await (await connect({ apiKey: 'tml-key', credentialCmd: 'echo tml-printed' })).close();
    expect(service.to('client/config')[0]?.headers['x-api-key']).toBe('tml-key');
    expect(service.to('auth/token')[0]?.headers['x-api-key']).toBe('tml-printed');
    expect(service.to('create_session')[0]?.headers['x-api-key']).toBe(token);
  });

  test('without a command where the service wants one', async () => {
    service.script('client/config', wanted({ credential_default_source: 'credential_cmd' }));
    await expect(connect({ apiKey: 'tml-key' })).rejects.toThrow(/TINKER_CREDENTIAL_CMD/);
    expect(service.to('auth/token')).toHaveLength(0);
  });

  test('are bought with a token in place of the command', async () => {
    const raw = jwt('raw', 3600);
    service.script('client/config', wanted({ credential_default_source: 'credential_cmd' }));
    service.script('auth/token', { json: { jwt: jwt('bought', 3600) } });
    await (await connect({ apiKey: raw })).close();
    expect(service.to('auth/token')[0]?.headers['x-api-key']).toBe(raw);
  });

  test('are renewed halfway in the background; until then, and when that fails, the old one serves', async () => {
    const clock = new FakeClock();
    const [first, second] = [jwt('first', 3600, clock.epochMs()), jwt('second', 7200, clock.epochMs())];
    service.script('client/config', wanted());
    service.script('auth/token', { json: { jwt: first } }, { status: 503 }, { json: { jwt: second } });
    await using client = await connect({ apiKey: 'tml-key', clock });
    const keyOf = async () => {
      await client.capabilities().catch(() => null);
      return service.to('get_server_capabilities').at(-1)?.headers['x-api-key'];
    };
    clock.advance(0.44 * 3600_000);
    expect(await keyOf()).toBe(first);
    expect(service.to('auth/token')).toHaveLength(1);
    clock.advance(0.12 * 3600_000);
    expect(await keyOf()).toBe(first);
    await vi.waitFor(() => expect(service.to('auth/token')).toHaveLength(2));
    expect(await keyOf()).toBe(first);
    expect(service.to('auth/token')).toHaveLength(2);
    clock.advance(60_001);
    await keyOf();
    await vi.waitFor(() => expect(service.to('auth/token')).toHaveLength(3));
    await vi.waitFor(async () => expect(await keyOf()).toBe(second));
  });

  test('refused ones are replaced once for all that were refused together', async () => {
    const [first, second] = [jwt('first', 3600), jwt('second', 7200)];
    service.script('client/config', wanted());
    service.script('auth/token', { json: { jwt: first } }, { json: { jwt: second } });
    await using client = await connect({ apiKey: 'tml-key' });
    service.usually('get_server_capabilities', ({ headers }) =>
      headers['x-api-key'] === first
        ? { status: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } }
        : { json: { supported_models: [] } },
    );
    await Promise.all([1, 2, 3].map(() => client.capabilities()));
    expect(service.to('auth/token')).toHaveLength(2);
    expect(service.to('get_server_capabilities')).toHaveLength(6);
  });
});

test('what the service says to its user is passed on, once', async () => {
  const told: string[] = [];
  const headers = { 'x-deprecation-note': 'this client is old' };
  service.script('client/config', { json: {}, headers });
  service.script('client/dynamic_config', { json: {}, headers });
  service.script('create_session', { json: { session_id: 's', warning_message: 'tml-key ends soon', info_message: 'hello' } });
  await using _client = await connect({ apiKey: 'tml-key', onNotice: (text) => told.push(text) });
  expect(told).toEqual(['this client is old', '<secret> ends soon', 'hello']);
});

test('an abort is obeyed while the command runs', async () => {
  const log = join(home, 'once');
  await using client = await connect({ credentialCmd: `test -e '${log}' && sleep 3; echo tml-key` });
  const sampler = await client.sampler({ baseModel: 'm' });
  writeFileSync(log, '');
  const sampling = sampler.sampleAll({ prompt: Int32Array.of(1), signal: AbortSignal.timeout(100) });
  const startMs = performance.now();
  await expect(sampling).rejects.toThrow(DOMException);
  expect(performance.now() - startMs).toBeLessThan(2000);
});

test('closing ends a command that hangs, and is not held up by it', async () => {
  const hang = join(home, 'hang');
  const client = await connect({ credentialCmd: `test -e '${hang}' && sleep 20; echo tml-key`, requestTimeoutMs: 300 });
  writeFileSync(hang, '');
  const waiting = client.capabilities().catch((caught) => caught);
  const startMs = performance.now();
  await client.close();
  expect(performance.now() - startMs).toBeLessThan(2000);
  expect(await waiting).toMatchObject({ name: 'RetryLater', call: 'close' });
  const children = () => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap');
  await vi.waitFor(() => expect(children()).toEqual([]));
});

describe('claims that are odd', () => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const tokenOf = (claims: unknown) => `${part({ alg: 'none' })}.${part(claims)}.sig`;
  const now = Math.floor(Date.now() / 1000);

  test.each([-1e20, -1, 0])('a token that expired at %d s', async (exp) => {
    await expect(connect({ apiKey: tokenOf({ exp }) })).rejects.toMatchObject({
      name: 'CredentialRefused',
      message: expect.stringContaining('TINKER_API_KEY expired'),
    });
  });

  test.each([
    ['a line break in it', `${tokenOf({ iat: now, exp: now + 3600 })}\r\nx: y`],
    ['no times', tokenOf({ sub: 'a' })],
    ['text for times', tokenOf({ iat: '1', exp: '9' })],
    ['nothing legible', 'eyJ..!!'],
  ])('a bought token with %s is refused at once', async (_, token) => {
    service.usually('client/config', { json: { pjwt_auth_enabled: true } });
    service.usually('auth/token', { json: { jwt: token } });
    await expect(connect({ apiKey: 'tml-key', noProgressMs: 60_000 })).rejects.toMatchObject({
      name: 'CredentialRefused',
      message: expect.stringContaining('token'),
    });
    expect(service.to('auth/token')).toHaveLength(1);
  });

  test('a token that begins in the future is not bought for every request', async () => {
    service.usually('client/config', { json: { pjwt_auth_enabled: true } });
    service.usually('auth/token', { json: { jwt: tokenOf({ iat: now + 1_000_000, exp: now + 3600 }) } });
    await using client = await connect({ apiKey: 'tml-key' });
    for (let i = 0; i < 5; i++) await client.sampler({ baseModel: 'm' });
    expect(service.to('auth/token')).toHaveLength(1);
  });
});

test('what no header can carry is refused at once', async () => {
  vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_ID', 'access id');
  await expect(connect({ apiKey: 'tml-key' })).rejects.toMatchObject({
    name: 'CredentialRefused',
    message: expect.stringContaining('CLOUDFLARE_ACCESS_CLIENT_ID'),
  });
  vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_ID', '');
  await using client = await connect({ apiKey: 'tml-key', noProgressMs: 60_000 });
  const copying = client.rest.weights.copy(statePath('tinker://run/weights/a'), { projectId: 'p', weightsAccessToken: 'two\nlines' });
  await expect(copying).rejects.toThrow(BadRequest);
});
