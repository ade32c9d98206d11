import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ConnectionOptions, statePath, TinkerClient, TrainingStateUnknown } from '../index.ts';
import { FakeService, type Reply } from '../testing/fake-service.ts';

let service: FakeService;

beforeEach(async () => {
  service = await FakeService.start();
  for (const name of ['TINKER_API_KEY', 'TINKER_CREDENTIAL_CMD', 'CLOUDFLARE_ACCESS_CLIENT_ID', 'CLOUDFLARE_ACCESS_CLIENT_SECRET']) {
    vi.stubEnv(name, '');
  }
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await service.stop();
});

const connect = (options: ConnectionOptions) => TinkerClient.connect({ baseUrl: service.url, noProgressMs: 300, ...options });

describe('secrets', () => {
  test('do not come back in errors and reports', async () => {
    vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_ID', 'access-id');
    vi.stubEnv('CLOUDFLARE_ACCESS_CLIENT_SECRET', 'access-secret');
    const told: string[] = [];
    const detail = 'the key tml-secret with access-secret is odd';
    service.script('create_session', { status: 500, json: { detail } }, { status: 422, json: { detail } });
    const options = { apiKey: 'tml-secret', onWait: ({ reason }: { reason: string | null }) => void told.push(String(reason)) };
    const error = await connect(options).catch((caught) => caught);
    const texts = JSON.stringify([told, error.message, error.detail, error]);
    expect(texts).toContain('the key <secret> with <secret> is odd');
    expect(texts).not.toMatch(/tml-secret|access-secret/);
    expect(service.seen[0]?.headers).toMatchObject({ 'cf-access-client-id': 'access-id', 'cf-access-client-secret': 'access-secret' });
  });

  test('do not come back where a long answer is cut', async () => {
    service.script('create_session', { status: 422, json: { detail: `${'x'.repeat(495)}tml-secret` } });
    const error = await connect({ apiKey: 'tml-secret' }).catch((caught) => caught);
    expect(error.message).not.toContain('tml-');
    expect(error.detail.length).toBeLessThanOrEqual(500);
  });

  test('do not come back as the id of a request', async () => {
    service.script('create_session', { status: 422, json: { detail: 'no' }, headers: { 'x-request-id': 'for-tml-secret' } });
    await expect(connect({ apiKey: 'tml-secret' })).rejects.toMatchObject({ requestId: 'for-<secret>' });
  });

  test.each<[string, Reply]>([
    ['a body that is no JSON', { text: 'tml-secret-of-this-client' }],
    ['a metric without its kind', { json: { loss_fn_outputs: [{}], metrics: { 'tml-secret-of-this-client': 1 } } }],
    ['a metric that is no number', { json: { loss_fn_outputs: [{}], metrics: { 'tml-secret-of-this-client:sum': [] } } }],
    ['a field of an odd kind', { json: { loss_fn_outputs: [{ 'tml-secret-of-this-client': 'x' }] } }],
    ['an error', { json: { error: { 'tml-secret-of-this-client': 1 } } }],
  ])('do not come back from %s, nor from what caused the error', async (_, reply) => {
    await using client = await connect({ apiKey: 'tml-secret-of-this-client' });
    service.script('forward_backward', { json: { request_id: 'a' } });
    service.script('retrieve_future', reply);
    const tokens = Int32Array.of(1);
    const batch = [{ modelInput: tokens, targetTokens: tokens, weights: Float32Array.of(1) }];
    const error = await client
      .training('m', { nextSeqId: 1 })
      .forwardBackward(batch, 'cross_entropy')
      .catch((caught) => caught);
    expect(error).toBeInstanceOf(TrainingStateUnknown);
    // Node shows the whole chain of causes.
    expect(inspect(error, { depth: 10 })).not.toContain('tml-');
  });

  test('of a command that prints another one every time are all known', async () => {
    vi.stubEnv('TINKER_API_KEY', '');
    await using client = await connect({ credentialCmd: 'echo tml-$(date +%N)' });
    const repeated: Reply = ({ headers }) => ({ status: 422, json: { detail: `not ${headers['x-api-key']}` }, delayMs: 300 });
    service.usually('get_server_capabilities', repeated);
    const asked = client.capabilities().catch((caught) => caught);
    for (let i = 0; i < 12; i++)
      await client.checkpoints
        .all()
        .next()
        .catch(() => {});
    expect((await asked).detail).toBe('not <secret>');
  });

  test('of shared weights do not come back either', async () => {
    await using client = await connect({ apiKey: 'tml-key' });
    const detail = 'no weights for shared-token';
    service.script('copy_weights', { status: 422, json: { detail } });
    const copying = client.rest.weights.copy(statePath('tinker://run/weights/a'), { projectId: 'p', weightsAccessToken: 'shared-token' });
    await expect(copying).rejects.toMatchObject({ detail: 'no weights for <secret>' });
    service.script('load_weights', { json: { request_id: 'a' } });
    service.script('retrieve_future', { json: { error: detail, category: 'user' } });
    const loading = client
      .training('m', { nextSeqId: 1 })
      .loadState(statePath('tinker://run/weights/a'), { optimizer: true, weightsAccessToken: 'shared-token' });
    await expect(loading).rejects.toMatchObject({ detail: 'no weights for <secret>' });
  });

  test('do not come back when the service refuses a session', async () => {
    service.script('create_session', { json: { session_id: 's', error_message: 'tml-key is too old' } });
    await expect(connect({ apiKey: 'tml-key' })).rejects.toMatchObject({ name: 'BadRequest', detail: '<secret> is too old' });
  });
});
