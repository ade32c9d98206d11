import { describe, expect, it } from 'vitest';
import { type SampleResult, SamplerBusy, type TokenSampler } from './index.ts';
import { ask, assistant, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { says, scriptedSampler } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

describe('a trial has one version of the weights', () => {
  /** A sampler whose weights are changed by `sample`, or from outside. */
  const renewable = (sample: (sampler: { version: string }) => SampleResult) => {
    const sampler = {
      version: 'step-0001',
      asked: 0,
      async sample() {
        sampler.asked++;
        return sample(sampler);
      },
    };
    return sampler;
  };

  it('a sampler renewed under a call: the call is an error, its tokens are wasted, and no span has them', async () => {
    const sampler = renewable((itself) => {
      itself.version = 'step-0002';
      return says('ls\n');
    });
    await using session = open(sampler);
    expect(await failure(await post(session, ask))).toMatchObject({ status: 502, code: 'model_failed' });
    const message = 'the trial was opened with weights step-0001, but its sampler has step-0002: a trial has one version';
    expect(session.record()).toMatchObject({
      calls: 0,
      wasted: { calls: 1, promptTokens: 5, sampledTokens: 3 },
      failure: { kind: 'bad_result', message },
    });
  });

  it('a sampler renewed between calls is not asked', async () => {
    const sampler = renewable(() => says('ls\n'));
    await using session = open(sampler);
    await post(session, ask);
    sampler.version = 'step-0002';
    expect((await post(session, ask)).status).toBe(502);
    expect(sampler.asked).toBe(1);
    expect(session.record().spans.map((span) => span.sampler)).toEqual(['step-0001']);
  });

  it('trials that were opened before and after a refresh run side by side, each with its own', async () => {
    const weights = (version: string): TokenSampler => ({ version, sample: async () => says(`${version}\n`) });
    let current = weights('step-1');
    const trials = Array.from({ length: 12 }, (_, index) => {
      if (index === 6) current = weights('step-2');
      return open(current);
    });
    await Promise.all(
      trials.map(async (session, index) => {
        const version = index < 6 ? 'step-1' : 'step-2';
        await post(session, ask);
        await post(session, { messages: [user('go'), assistant(version), user('on')] });
        const { spans, fragments } = session.record();
        expect([spans.map(({ sampler }) => sampler), fragments]).toEqual([[version, version], { first: 1 }]);
        await session[Symbol.asyncDispose]();
      }),
    );
  });
});

it('one of 32 samples is refused: only its trial is told', async () => {
  const trials = Array.from({ length: 32 }, (_, index) =>
    open(scriptedSampler(index === 17 ? new SamplerBusy('full', 1000) : says('ls\n'))),
  );
  const statuses = await Promise.all(trials.map(async (session) => (await post(session, ask)).status));
  expect(statuses.map((status, index) => [index, status]).filter(([, status]) => status !== 200)).toEqual([[17, 429]]);
  expect(trials.map((session) => session.record().failure).filter(Boolean)).toHaveLength(1);
  expect(trials.reduce((sum, session) => sum + session.record().calls, 0)).toBe(31);
  for (const session of trials) await session[Symbol.asyncDispose]();
});
