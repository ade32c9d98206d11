import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ServiceFixture } from '../testing/service-fixture.ts';

let fixture: ServiceFixture;
let session: string;
let model: string;
beforeEach(async () => {
  fixture = new ServiceFixture();
  ({ session, model } = await fixture.openSession());
});
afterEach(() => fixture.remove());

const listed = async (): Promise<unknown[]> => {
  const { checkpoints } = await fixture.ask('GET', `training_runs/${model}/checkpoints`);
  return (checkpoints as { checkpoint_id: string; expires_at: unknown; public: boolean }[]).map((each) => [
    each.checkpoint_id,
    each.expires_at,
    each.public,
  ]);
};
const sample = (samplerId: unknown, seq: number, more: object = {}) => ({
  sampling_session_id: samplerId,
  seq_id: seq,
  prompt: { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] },
  sampling_params: { max_tokens: 1 },
  ...more,
});

describe('checkpoints', () => {
  it('end with their time: from then on every use of the path is a 404 that says so', async () => {
    const body = { model_id: model, seq_id: 1, path: 'a', overwrite: false, ttl_seconds: 3600 };
    const { path } = await fixture.call('save_weights', body);
    const saved = await fixture.call('save_weights_for_sampler', { model_id: model, seq_id: 2, path: 'b', kind: 'snapshot' });
    const created = await fixture.ask('POST', 'create_sampling_session', {
      session_id: session,
      sampling_session_seq_id: 0,
      model_path: saved.path,
    });
    await fixture.ask('PUT', `training_runs/${model}/checkpoints/sampler_weights/b/ttl`, { ttl_seconds: 7200 });
    expect(await listed()).toEqual([
      ['weights/a', '2026-01-01T01:00:00.000Z', false],
      ['sampler_weights/b', '2026-01-01T02:00:00.000Z', false],
    ]);
    fixture.now = '2026-01-01T03:00:00.000Z';
    expect(await listed()).toEqual([]);
    const uses: [string, string, unknown, string][] = [
      ['POST', 'load_weights', { session_id: session, model_seq_id: 1, path, optimizer: true }, 'weights/a'],
      ['POST', 'weights_info', { tinker_path: path }, 'weights/a'],
      ['POST', 'create_sampling_session', { session_id: session, sampling_session_seq_id: 1, model_path: saved.path }, 'sampler_weights/b'],
      ['POST', 'asample', sample(created.sampling_session_id, 0), 'sampler_weights/b'],
      ['PUT', `training_runs/${model}/checkpoints/weights/a/ttl`, { ttl_seconds: null }, 'weights/a'],
      ['POST', `training_runs/${model}/checkpoints/weights/a/publish`, undefined, 'weights/a'],
      ['DELETE', `training_runs/${model}/checkpoints/weights/a`, undefined, 'weights/a'],
    ];
    for (const [method, route, sent, name] of uses) {
      const answer = await fixture.send(method, route, sent);
      expect([route, answer.status]).toEqual([route, 404]);
      expect(answer.body.detail).toContain(`checkpoint 'tinker://${model}/${name}' expired at 2026-01-01T0`);
    }
    const load = await fixture.call('load_weights', { model_id: model, seq_id: 3, path, optimizer: true });
    expect(load).toEqual({ error: expect.stringContaining('expired at 2026-01-01T01:00:00.000Z'), category: 'user' });
  });

  it('that were asked for without a name are in no list and under no path, and last over a restart', async () => {
    const body = { model_id: model, seq_id: 1, sampling_session_seq_id: 0, kind: 'snapshot' };
    const { sampling_session_id: sampler, path } = await fixture.call('save_weights_for_sampler', body);
    expect(path).toBeUndefined();
    expect(await listed()).toEqual([]);
    expect((await fixture.ask('GET', 'checkpoints')).checkpoints).toEqual([]);
    expect(await fixture.ask('GET', `training_runs/${model}`)).toMatchObject({ last_sampler_checkpoint: null });
    expect(await fixture.ask('GET', `samplers/${sampler}`)).toEqual({ sampler_id: sampler, base_model: 'base' });
    const [name = ''] = readdirSync(join(fixture.folder, 'models', model.replaceAll(':', '.'), 'ephemeral'));
    const hidden = `tinker://${model}/ephemeral/${name.split('@')[0]}`;
    const guess = { session_id: session, sampling_session_seq_id: 5, model_path: hidden };
    expect((await fixture.send('POST', 'create_sampling_session', guess)).status).toBe(404);
    expect(
      (await fixture.send('DELETE', hidden.replace('tinker://', 'training_runs/').replace(model, `${model}/checkpoints`))).status,
    ).toBe(404);
    fixture.restart();
    expect((await fixture.send('POST', 'asample', sample(sampler, 0))).status).toBe(200);
    await fixture.call('save_weights_for_sampler', { model_id: model, seq_id: 2, path: 'named', kind: 'snapshot' });
    expect(await listed()).toEqual([['sampler_weights/named', null, false]]);
  });

  it('whose file is damaged fail what is sampled from them, by name', async () => {
    const saved = await fixture.call('save_weights_for_sampler', { model_id: model, seq_id: 1, path: 'a', kind: 'snapshot' });
    const path = join(fixture.folder, 'models', model.replaceAll(':', '.'), 'sampler_weights', 'a@1.safetensors');
    writeFileSync(path, 'damaged');
    const open = { session_id: session, sampling_session_seq_id: 0, model_path: saved.path };
    const { sampling_session_id: sampler } = await fixture.ask('POST', 'create_sampling_session', open);
    const failed = { category: 'server', error: expect.stringContaining(`${path}: the file is damaged`) };
    expect(await fixture.call('asample', sample(sampler, 0))).toEqual(failed);
  });

  it('are published and taken back', async () => {
    await fixture.call('save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false });
    const route = `training_runs/${model}/checkpoints/weights/a/publish`;
    expect((await fixture.send('POST', route)).status).toBe(204);
    fixture.restart();
    expect(await listed()).toEqual([['weights/a', null, true]]);
    expect((await fixture.send('DELETE', route)).status).toBe(204);
    expect(await listed()).toEqual([['weights/a', null, false]]);
    const urls = await fixture.send('GET', `training_runs/${model}/checkpoints/external_weights/a/external_weights_urls`);
    expect(urls).toEqual({ status: 400, body: { detail: expect.stringContaining('not served here') } });
  });
});

describe('numbers', () => {
  it('name one call for good: of models, of sampling sessions, of samples', async () => {
    const create = { session_id: session, model_seq_id: 0, base_model: 'base', lora_config: { rank: 4 } };
    expect(await fixture.ask('POST', 'create_model', create)).toMatchObject({ model_id: model });
    const attempts: [string, unknown][] = [
      ['create_model', { ...create, lora_config: { rank: 8 } }],
      ['create_model', { ...create, base_model: 'other' }],
      ['create_sampling_session', { session_id: session, sampling_session_seq_id: 0, base_model: 'other' }],
    ];
    const first = { session_id: session, sampling_session_seq_id: 0, base_model: 'base' };
    const { sampling_session_id: sampler } = await fixture.ask('POST', 'create_sampling_session', first);
    const promise = await fixture.ask('POST', 'asample', sample(sampler, 0));
    expect(await fixture.ask('POST', 'asample', sample(sampler, 0))).toEqual(promise);
    attempts.push(['asample', sample(sampler, 0, { num_samples: 2 })]);
    for (const [path, body] of attempts) {
      expect(await fixture.send('POST', path, body)).toEqual({ status: 400, body: { detail: expect.stringContaining('conflict') } });
    }
    const save = { model_id: model, seq_id: 1, sampling_session_seq_id: 0, kind: 'snapshot' };
    expect(await fixture.call('save_weights_for_sampler', save)).toEqual({ error: expect.stringContaining('conflict'), category: 'user' });
  });

  it('wait for a missing one: the poller is told to ask again, the call stays', async () => {
    const promise = await fixture.ask('POST', 'save_weights', { model_id: model, seq_id: 2, path: 'b', overwrite: false });
    const poll = () => fixture.ask('POST', 'retrieve_future', { request_id: promise.request_id });
    expect(await poll()).toMatchObject({ type: 'try_again', request_id: promise.request_id, queue_state: 'active' });
    await fixture.ask('POST', 'save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false });
    expect(await poll()).toMatchObject({ path: `tinker://${model}/weights/b` });
  });

  it('of a client that joins a sampling session are handed out once each', async () => {
    const first = { session_id: session, sampling_session_seq_id: 0, base_model: 'base' };
    const { sampling_session_id: sampler } = await fixture.ask('POST', 'create_sampling_session', first);
    const join = async () => (await fixture.ask('POST', 'join_sampling_session', { sampling_session_id: sampler })).client_counter;
    expect([await join(), await join()]).toEqual([1, 2]);
    fixture.restart();
    expect(await join()).toBe(3);
    expect((await fixture.send('POST', 'join_sampling_session', { sampling_session_id: 'x' })).status).toBe(404);
  });
});

describe('a model', () => {
  it('keeps what was not fetched when it is unloaded, and little of it when its session is over', async () => {
    for (let seq = 1; seq <= 20; seq += 1) await fixture.ask('POST', 'save_weights', { model_id: model, seq_id: seq, path: `s${seq}` });
    const poll = async (seq: number) => (await fixture.send('POST', 'retrieve_future', { request_id: `${model}:${seq}` })).status;
    const unloaded = () => fixture.ask('POST', 'retrieve_future', { request_id: `${model}:unload` });
    await fixture.ask('POST', 'unload_model', { model_id: model });
    await unloaded();
    expect([await poll(2), await poll(20)]).toEqual([200, 200]);
    expect((await fixture.send('POST', `sessions/${session}/finish`, { reason: { type: 'success' } })).status).toBe(204);
    await unloaded();
    expect([await poll(1), await poll(2), await poll(20)]).toEqual([410, 410, 200]);
  });

  it('is unloaded as a future, which a restart does not forget', async () => {
    const promise = await fixture.ask('POST', 'unload_model', { model_id: model, type: 'unload_model' });
    const poll = () => fixture.ask('POST', 'retrieve_future', { request_id: promise.request_id });
    expect(await poll()).toEqual({ type: 'unload_model', model_id: model });
    fixture.restart();
    expect(await poll()).toEqual({ type: 'unload_model', model_id: model });
    expect((await fixture.send('POST', 'retrieve_future', { request_id: 's:train:9:unload' })).status).toBe(404);
    expect(await fixture.call('save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false })).toMatchObject({
      path: `tinker://${model}/weights/a`,
    });
  });
});
