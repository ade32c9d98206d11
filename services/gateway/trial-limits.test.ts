import { describe, expect, it } from 'vitest';
import { ask, failure, gatewayFixture } from './testing/gateway-fixture.ts';
import { says, scriptedSampler } from './testing/scripted-sampler.ts';
import type { SampleRequest } from './token-sampler.ts';

const { open, post } = gatewayFixture();
const all = ({ maxTokens }: SampleRequest) => says('x'.repeat(maxTokens));
const NO_LIMIT = { callLimited: false, tokenLimited: false, usdLimited: false, timeLimited: false };

/** Answers when the trial ends it, with `late` if that is given. */
function hanging(late?: string) {
  return scriptedSampler(
    ({ signal }) =>
      new Promise((resolve, reject) =>
        signal?.addEventListener('abort', () => (late === undefined ? reject(signal.reason) : resolve(says(late)))),
      ),
  );
}

describe('calls', () => {
  it('beyond the limit are refused in a form that agents do not repeat, and the record says so', async () => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler, { maxCalls: 2 });
    for (const _ of [1, 2]) expect((await post(session, ask)).status).toBe(200);
    expect(session.record()).toMatchObject(NO_LIMIT);
    expect(await failure(await post(session, ask))).toMatchObject({ status: 400, code: 'call_limit_reached' });
    expect(session.record()).toMatchObject({ ...NO_LIMIT, callLimited: true, calls: 2, failure: null });
    expect(sampler.requests).toHaveLength(2);
  });
});

describe('sampled tokens', () => {
  it('are limited over all calls: the last answer is cut, then calls are refused', async () => {
    const sampler = scriptedSampler(all);
    await using session = open(sampler, { maxSampledTokens: 20 });
    await post(session, ask);
    expect(session.record()).toMatchObject(NO_LIMIT);
    await post(session, ask);
    expect(sampler.requests.map(({ maxTokens, roomTokens }) => [maxTokens, roomTokens])).toEqual([
      [16, undefined],
      [4, 16],
    ]);
    expect(session.record()).toMatchObject({ ...NO_LIMIT, tokenLimited: true, sampledTokens: 20 });
    expect(await failure(await post(session, ask))).toMatchObject({ status: 400, code: 'token_limit_reached' });
    expect(sampler.requests).toHaveLength(2);
  });

  it('count when they are wasted, and while they may still come', async () => {
    const slow = Promise.withResolvers<void>();
    const sampler = scriptedSampler(
      says('abc', { logprobs: Float32Array.of(-1) }),
      () => slow.promise.then(() => says('a\n')),
      () => says('b\n'),
    );
    await using session = open(sampler, { maxSampledTokens: 24 });
    await post(session, ask);
    const first = post(session, ask);
    await expect.poll(() => sampler.requests.length).toBe(2);
    await post(session, ask);
    expect(sampler.requests.map(({ maxTokens }) => maxTokens)).toEqual([16, 16, 5]);
    slow.resolve();
    await first;
    expect(session.record()).toMatchObject(NO_LIMIT);
  });
});

describe('time', () => {
  it('begins with the first call; when it is up, that call ends and no other is taken', async () => {
    const sampler = hanging();
    await using session = open(sampler, { maxWallMs: 60 });
    await new Promise((resolve) => setTimeout(resolve, 100)); // a sandbox is set up
    const told = await failure(await post(session, ask));
    expect(told).toMatchObject({ status: 410, code: 'time_limit_reached' });
    expect(await failure(await post(session, ask))).toMatchObject({ status: 410, code: 'time_limit_reached' });
    expect(sampler.requests).toHaveLength(1);
    expect(session.record()).toMatchObject({ ...NO_LIMIT, timeLimited: true, calls: 0, failure: null });
  });

  it('that is up while nothing is asked limits nothing', async () => {
    await using session = open(scriptedSampler(says('ls\n')), { maxWallMs: 40 });
    await post(session, ask);
    await new Promise((resolve) => setTimeout(resolve, 80));
    expect(session.record()).toMatchObject({ ...NO_LIMIT, calls: 1 });
  });

  it('what is sampled all the same is wasted', async () => {
    await using session = open(hanging('ls\n'), { maxWallMs: 30 });
    expect((await post(session, ask)).status).toBe(410);
    expect(session.record()).toMatchObject({ calls: 0, wasted: { calls: 1, promptTokens: 5, sampledTokens: 3 } });
  });
});
