import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { faultReports, firedBy, on, putFaults } from '../support/faults.ts';
import { withFaultyTrainer } from '../support/faulty-trainer.ts';
import { ADAM, type TrainerFixture } from '../trainer-fixture.ts';
import { KEY, runTrainerProcess, startTrainerProcess } from '../trainer-process.ts';

/** Faults of the trainer's plan that show in a single answer, as a plain HTTP client meets them. */

let fixture: TrainerFixture;
let url: string;
withFaultyTrainer((started) => {
  fixture = started;
  url = fixture.trainer.url;
});

const send = (path: string, body: unknown = {}, method = 'POST') =>
  fetch(`${url}/api/v1/${path}`, {
    method,
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    ...(method === 'GET' ? {} : { body: JSON.stringify(body) }),
  });
const statusesOf = async (calls: number, path = 'client/config') => {
  const statuses: number[] = [];
  for (let i = 0; i < calls; i += 1) statuses.push((await send(path)).status);
  return statuses;
};
const sessions = async () => ((await (await send('sessions', {}, 'GET')).json()) as { sessions: string[] }).sessions.length;

describe('answers in the service’s stead', () => {
  it.each([
    ['payment', { status: 402, detail: 'top up' }, {}, { detail: 'top up' }],
    [
      'a busy queue',
      { status: 408, queue_state: 'paused_capacity', queue_state_reason: 'no room' },
      {},
      { detail: 'status 408 by the fault plan', queue_state: 'paused_capacity', queue_state_reason: 'no room' },
    ],
    ['something gone', { status: 410 }, {}, { detail: 'status 410 by the fault plan' }],
    ['a rate limit, seconds', { status: 429, retry_after_s: 120, detail: 'x' }, { 'retry-after': '120' }, { detail: 'x' }],
    ['a rate limit, ms', { status: 429, retry_after_ms: 250, detail: 'x' }, { 'retry-after-ms': '250' }, { detail: 'x' }],
    ['no retry wanted', { status: 500, should_retry: false, detail: 'x' }, { 'x-should-retry': 'false' }, { detail: 'x' }],
    ['a retry wanted', { status: 503, should_retry: true, detail: 'x' }, { 'x-should-retry': 'true' }, { detail: 'x' }],
    ['a bad gateway', { status: 502, detail: 'x' }, {}, { detail: 'x' }],
    ['a slow gateway', { status: 504, detail: 'x' }, {}, { detail: 'x' }],
    [
      'a refused token',
      { status: 401, invalid_token: true, detail: 'x' },
      { 'www-authenticate': 'Bearer error="invalid_token"' },
      { detail: 'x' },
    ],
  ] as const)('%s', async (_, fault, headers, body) => {
    await putFaults(url, on('create_session', { kind: 'status', ...fault }));
    const before = await sessions();
    const answer = await send('create_session');
    expect(answer.status).toBe(fault.status);
    expect(Object.fromEntries(answer.headers)).toMatchObject(headers);
    expect(await answer.json()).toEqual(body);
    expect(await sessions()).toBe(before);
    expect((await send('create_session')).status).toBe(200);
    expect(await firedBy(url)).toEqual([1]);
  });

  it('an empty 400', async () => {
    await putFaults(url, on('create_session', { kind: 'empty_400' }));
    const answer = await send('create_session');
    expect([answer.status, answer.headers.get('content-length'), await answer.text()]).toEqual([400, '0', '']);
  });
});

describe('connections and promises', () => {
  it.each([
    ['drop', { kind: 'drop' }, 0],
    ['drop_after', { kind: 'drop_after' }, 1],
    ['hang', { kind: 'hang', ms: 300 }, 0],
  ] as const)('%s closes the connection', async (_, fault, reachedTheService) => {
    await putFaults(url, on('create_session', fault));
    const before = await sessions();
    const startMs = performance.now();
    await expect(send('create_session')).rejects.toThrow('fetch failed');
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(fault.kind === 'hang' ? 299 : 0);
    expect(await sessions()).toBe(before + reachedTheService);
    expect((await send('create_session')).status).toBe(200);
    expect(await firedBy(url)).toEqual([1]);
  });

  it('delay_promise answers late', async () => {
    await putFaults(url, on('create_session', { kind: 'delay_promise', ms: 300 }));
    const startMs = performance.now();
    const answer = send('create_session');
    const before = await sessions();
    expect((await answer).status).toBe(200);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(299);
    expect(await sessions()).toBe(before);
  });

  it.each(['first', 'second'] as const)('duplicate_promise hands a call in twice and sends the %s answer', async (which) => {
    const model = await fixture.createModel();
    await putFaults(url, on('*', { kind: 'duplicate_promise', send: which }, { times: 'always' }));
    const before = await sessions();
    await send('create_session');
    expect(await sessions()).toBe(before + 2);
    const { client } = fixture;
    expect(await client.call('optim_step', { model_id: model, seq_id: 1, adam_params: ADAM })).toMatchObject({
      metrics: { 'optimizer_step:max': 1 },
    });
    expect(await client.call('optim_step', { model_id: model, seq_id: 2, adam_params: ADAM })).toMatchObject({
      metrics: { 'optimizer_step:max': 2 },
    });
  });
});

describe('when a rule fires', () => {
  const bad = { kind: 'status', status: 500 } as const;

  it.each([
    ['once, at the first', {}, [500, 200, 200, 200]],
    ['from the n-th', { nth: 3 }, [200, 200, 500, 200]],
    ['so many times', { nth: 2, times: 2 }, [200, 500, 500, 200]],
    ['always', { nth: 2, times: 'always' }, [200, 500, 500, 500]],
  ] as const)('%s', async (_, when, statuses) => {
    await putFaults(url, on('client/config', bad, when));
    expect(await statusesOf(2, 'client/dynamic_config')).toEqual([200, 200]);
    expect(await statusesOf(4)).toEqual(statuses);
    const fired = statuses.filter((status) => status === 500).length;
    expect(await faultReports(url)).toEqual([expect.objectContaining({ matched: 4, fired })]);
  });

  it('by a probability that follows from the seed', async () => {
    const pattern = async (seed: number) => {
      await putFaults(url, on('client/config', bad, { times: 'always', probability: 0.3, seed }));
      return statusesOf(40);
    };
    const first = await pattern(1);
    const hits = first.filter((status) => status === 500).length;
    expect(hits).toBeGreaterThan(3);
    expect(hits).toBeLessThan(25);
    expect(await pattern(1)).toEqual(first);
    expect(await pattern(2)).not.toEqual(first);
  });

  it('for calls of a pattern', async () => {
    await putFaults(url, on('client/*', bad, { times: 'always' }));
    expect([
      ...(await statusesOf(1)),
      ...(await statusesOf(1, 'client/dynamic_config')),
      ...(await statusesOf(1, 'create_session')),
    ]).toEqual([500, 500, 200]);
  });

  it('for futures of a type', async () => {
    const model = await fixture.createModel();
    await putFaults(url, on('retrieve_future', bad, { for: 'OptimStep', times: 'always' }));
    const { client } = fixture;
    const save = await client.post('save_weights', { model_id: model, seq_id: 1, path: 'a', overwrite: false });
    const step = await client.post('optim_step', { model_id: model, seq_id: 2, adam_params: ADAM });
    expect(await client.retrieve(save.request_id)).toHaveProperty('path');
    await expect(client.retrieve(step.request_id)).rejects.toThrow('500');
  });

  it('a rule that ends a call hides it from the others', async () => {
    await putFaults(url, on('client/config', { kind: 'drop_after' }), on('client/config', bad));
    expect((await send('client/config')).status).toBe(500);
    await expect(send('client/config')).rejects.toThrow('fetch failed');
    expect(await firedBy(url)).toEqual([1, 1]);
  });
});

describe('the plan', () => {
  it('is neither shown nor changed without the key, and is kept when a new one is refused', async () => {
    await putFaults(url, on('asample', { kind: 'drop' }));
    const put = (headers: Record<string, string>, body: string) => fetch(`${url}/faults`, { method: 'PUT', headers, body });
    expect((await fetch(`${url}/faults`)).status).toBe(401);
    expect((await put({}, '[]')).status).toBe(401);
    const refused = await put({ 'x-api-key': KEY }, '[{"on":"asample","fault":{"kind":"hang"}}]');
    expect([refused.status, ((await refused.json()) as { detail: string }).detail]).toEqual([
      400,
      expect.stringContaining('rule 1, fault.ms'),
    ]);
    expect(await faultReports(url)).toEqual([expect.objectContaining({ on: 'asample', fired: 0 })]);
  });

  it('is read at the start, started over by a restart, and absent without the flag', async () => {
    const state = mkdtempSync(join(tmpdir(), 'fault-plan-'));
    const faults = join(state, 'plan.json');
    writeFileSync(faults, JSON.stringify([on('healthz', { kind: 'status', status: 503 })]));
    const health = async (flags: { faults?: string }) => {
      const trainer = await startTrainerProcess({ state, weights: fixture.weights, ...flags });
      const get = async (path: string) => (await fetch(trainer.url + path, { headers: { 'x-api-key': KEY } })).status;
      const statuses = [await get('/api/v1/healthz'), await get('/api/v1/healthz'), await get('/faults')];
      await trainer.kill('SIGKILL');
      return statuses;
    };
    expect(await health({ faults })).toEqual([503, 200, 200]);
    expect(await health({ faults })).toEqual([503, 200, 200]);
    expect(await health({})).toEqual([200, 200, 404]);
    rmSync(state, { recursive: true });
  });

  it('that is bad is refused at the start, naming file, rule and field', async () => {
    const state = mkdtempSync(join(tmpdir(), 'fault-plan-'));
    const faults = join(state, 'plan.json');
    writeFileSync(faults, '[{"on":"asample","fault":{"kind":"hang"}}]');
    const { code, stderr } = await runTrainerProcess({ state, faults });
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${faults}: rule 1, fault.ms: `)]);
    const missing = await runTrainerProcess({ state, faults: join(state, 'none.json') });
    expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining('none.json: cannot be read')]);
    rmSync(state, { recursive: true });
  });
});
