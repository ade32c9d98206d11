import { describe, expect, it } from 'vitest';
import { SamplerBusy, SamplerUnavailable } from './index.ts';
import { ask, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { says, scriptedSampler, textOf } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

describe('a model that fails', () => {
  it.each<[string, Error | ReturnType<typeof says>, number, string, object]>([
    ['breaks', new Error('secret path'), 502, 'model_failed', { kind: 'failed', message: 'secret path', afterCalls: 0 }],
    ['cannot be reached', new SamplerUnavailable('down'), 503, 'model_unavailable', { kind: 'unavailable', message: 'down' }],
    ['is full', new SamplerBusy('queue', 1200), 429, 'model_busy', { kind: 'busy', message: 'queue' }],
    [
      'gives a log-probability too few',
      says('ls\n', { logprobs: Float32Array.of(-1, -1) }),
      502,
      'model_failed',
      { kind: 'bad_result', message: 'the sampler returned 3 ids but 2 log-probabilities' },
    ],
    ['gives nothing', says(''), 502, 'model_failed', { kind: 'bad_result', message: expect.stringMatching('no ids') }],
    [
      'gives more than was asked',
      says('x'.repeat(17)),
      502,
      'model_failed',
      { kind: 'bad_result', message: expect.stringMatching('at most 16') },
    ],
    [
      'gives a foreign id',
      says('ab', { tokens: Int32Array.of(97, 128) }),
      502,
      'model_failed',
      { kind: 'bad_result', message: expect.stringMatching('id 128') },
    ],
  ])('%s: the agent is told what to do, the record keeps why, nothing can be trained on', async (_, step, status, code, kept) => {
    await using session = open(scriptedSampler(step, says('ls\n')));
    const told = await failure(await post(session, ask));
    expect(told).toMatchObject({ status, code });
    expect(told.message).not.toMatch(/secret|rate limit|429/i);
    expect(session.record()).toMatchObject({ calls: 0, spans: [], failure: kept });

    expect((await post(session, ask)).status).toBe(200);
    expect(session.record()).toMatchObject({ calls: 1, fragments: { first: 1 }, failure: { afterCalls: 0 } });
  });

  it('says when to come back', async () => {
    await using session = open(scriptedSampler(new SamplerBusy('queue', 1200)));
    const { headers } = await post(session, ask);
    expect([headers.get('retry-after'), headers.get('retry-after-ms')]).toEqual(['2', '1200']);
  });

  it('and was paid: the tokens of an unusable result are counted as wasted', async () => {
    await using session = open(scriptedSampler(says('ls\n', { logprobs: Float32Array.of(-1) })));
    await post(session, ask);
    expect(session.record()).toMatchObject({ promptTokens: 0, sampledTokens: 0, wasted: { calls: 1, promptTokens: 5, sampledTokens: 3 } });
  });
});

describe('calls at once', () => {
  it('of one trial are sampled together and recorded as they come back', async () => {
    const slow = Promise.withResolvers<void>();
    const sampler = scriptedSampler(
      () => slow.promise.then(() => says('slow\n')),
      () => says('fast\n'),
    );
    await using session = open(sampler);
    const first = post(session, { messages: [user('one')] });
    await expect.poll(() => sampler.requests.length).toBe(1);
    expect((await post(session, { messages: [user('two')] })).status).toBe(200);
    slow.resolve();
    expect((await first).status).toBe(200);
    expect(session.record().spans.map(({ callIndex, sampled }) => [callIndex, textOf(sampled)])).toEqual([
      [0, 'fast\n'],
      [1, 'slow\n'],
    ]);
    expect(session.record().fragments).toEqual({ first: 1, no_match: 1 });
  });

  it('count against the limit of calls while they run', async () => {
    const slow = Promise.withResolvers<void>();
    const sampler = scriptedSampler(() => slow.promise.then(() => says('slow\n')));
    await using session = open(sampler, { maxCalls: 1 });
    const first = post(session, ask);
    await expect.poll(() => sampler.requests.length).toBe(1);
    expect(await failure(await post(session, ask))).toMatchObject({ status: 400, code: 'call_limit_reached' });
    slow.resolve();
    expect((await first).status).toBe(200);
    expect(await failure(await post(session, ask))).toMatchObject({ code: 'call_limit_reached' });
  });
});

describe('a call that nobody waits for', () => {
  /** Hangs until aborted; `after` says what it then does. */
  function hanging(after: (reason: unknown) => ReturnType<typeof says> | Error) {
    return scriptedSampler(
      ({ signal }) =>
        new Promise((resolve, reject) =>
          signal?.addEventListener('abort', () => {
            const outcome = after(signal.reason);
            if (outcome instanceof Error) reject(outcome);
            else resolve(outcome);
          }),
        ),
    );
  }

  it.each([false, true])('is aborted when the client leaves, and is no failure of the model (stream: %s)', async (stream) => {
    const aborted: unknown[] = [];
    const sampler = hanging((reason) => {
      aborted.push(reason);
      return new Error('aborted');
    });
    await using session = open(sampler);
    const leaving = new AbortController();
    const call = post(session, { ...ask, stream }, { signal: leaving.signal }).then((response) => response.text());
    await expect.poll(() => sampler.requests.length).toBe(1);
    if (stream) await new Promise((resolve) => setTimeout(resolve, 60)); // the stream is open and pinging by then
    leaving.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => aborted.length).toBe(1);
    expect(session.record()).toMatchObject({ calls: 0, failure: null });
  });

  it('is not recorded when the sampler finishes it all the same, but counted as wasted', async () => {
    const sampler = hanging(() => says('ls\n'));
    await using session = open(sampler);
    const leaving = new AbortController();
    const call = post(session, ask, { signal: leaving.signal });
    await expect.poll(() => sampler.requests.length).toBe(1);
    leaving.abort();
    await expect(call).rejects.toThrow();
    await expect.poll(() => session.record().wasted).toEqual({ calls: 1, promptTokens: 5, sampledTokens: 3 });
    expect(session.record().calls).toBe(0);
  });

  it('is answered with 410 when the trial ends under it', async () => {
    const sampler = hanging(() => new Error('aborted'));
    const session = open(sampler);
    const call = post(session, ask);
    await expect.poll(() => sampler.requests.length).toBe(1);
    await session[Symbol.asyncDispose]();
    expect(await failure(await call)).toMatchObject({ status: 410, code: 'trial_ended' });
    expect(session.record()).toMatchObject({ calls: 0, failure: null });
  });
});
