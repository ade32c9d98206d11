import { describe, expect, it } from 'vitest';
import { mostTokens, type TrialUse, tokenPrices } from '../../core/money/trial-limit.ts';
import { SamplerUnpaid } from './index.ts';
import { ask, assistant, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { says, scriptedSampler } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

/** A dollar for each token of a conversation, and one more for each that is sampled; what was sent before costs 20 cents. */
const PRICES = tokenPrices(
  {
    student_prefill: 1e6,
    student_cached_prefill: null,
    student_sample: 1e6,
    student_train: null,
    teacher_prefill: null,
    teacher_cached_prefill: null,
    teacher_sample: null,
  },
  'student',
  null,
);
const costing = (limitUsd: number) => ({
  spendLimit: { limitUsd, mostTokens: (use: TrialUse) => mostTokens(limitUsd, PRICES, use) },
});
/** "go" is rendered as five tokens. */
const GO_USD = 5;

describe('a trial that may cost only so much', () => {
  it('samples freely while all that a call may cost fits', async () => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler, costing(GO_USD + 2 * 16));
    expect((await post(session, ask)).status).toBe(200);
    expect(sampler.requests[0]?.maxTokens).toBe(16);
    expect(session.record()).toMatchObject({ calls: 1, usdLimited: false });
  });

  it('cuts the room for an answer to what fits, and says so when the answer is cut', async () => {
    const sampler = scriptedSampler(({ maxTokens }) => says('x'.repeat(maxTokens)));
    await using session = open(sampler, costing(GO_USD + 2 * 4));
    expect((await post(session, ask)).status).toBe(200);
    expect(sampler.requests[0]?.maxTokens).toBe(4);
    expect(session.record()).toMatchObject({ calls: 1, sampledTokens: 4, usdLimited: true });
  });

  it('of which an answer that ends before the cut is none', async () => {
    await using session = open(scriptedSampler(says('ls\n')), costing(GO_USD + 2 * 4));
    await post(session, ask);
    expect(session.record()).toMatchObject({ calls: 1, usdLimited: false });
  });

  it('refuses a call of which not even one token fits, in a form that agents do not repeat', async () => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler, costing(GO_USD + 2 * 3));
    expect((await post(session, ask)).status).toBe(200);
    const more = { ...ask, messages: [user('go'), assistant('ls'), user('[0] sun')] };
    const told = await failure(await post(session, more));
    expect(told).toMatchObject({ status: 400, code: 'usd_limit_reached' });
    expect(told.message).not.toMatch(/context|rate limit|quota/i);
    expect(sampler.requests).toHaveLength(1);
    expect(session.record()).toMatchObject({ calls: 1, usdLimited: true, failure: null });
  });

  it('counts calls under way at the most that they may cost', async () => {
    const slow = Promise.withResolvers<void>();
    const sampler = scriptedSampler(
      () => slow.promise.then(() => says('ls\n')),
      () => says('\n'),
    );
    await using session = open(sampler, costing(GO_USD + 2 * 16 + GO_USD + 2));
    const first = post(session, ask);
    await expect.poll(() => sampler.requests.length).toBe(1);
    expect((await post(session, ask)).status).toBe(200);
    expect(sampler.requests[1]?.maxTokens).toBe(1);
    slow.resolve();
    await first;
    // The first took 3 tokens of its 16, so the next one has room again.
    await post(session, ask);
    expect(sampler.requests.at(-1)?.maxTokens).toBeGreaterThan(1);
  });
});

it('a service that wants payment tells the agent to stop, and the record why', async () => {
  await using session = open(scriptedSampler(new SamplerUnpaid('top up')));
  expect(await failure(await post(session, ask))).toMatchObject({ status: 410, code: 'trial_suspended' });
  expect(session.record()).toMatchObject({ calls: 0, failure: { kind: 'unpaid', message: 'top up', afterCalls: 0 } });
});
