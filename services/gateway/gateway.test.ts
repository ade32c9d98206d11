import { describe, expect, it } from 'vitest';
import { ask, assistant, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { ids, says, scriptedSampler } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

describe('an answer', () => {
  it('holds the text, the usage, and on request log-probabilities and ids of every token, the stop token included', async () => {
    await using session = open(scriptedSampler(says('ls\n', { logprobs: Float32Array.of(-0.5, -0.25, 0), promptCacheHitTokens: 2 })));
    const response = await post(session, { ...ask, logprobs: true, return_token_ids: true });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      id: expect.stringMatching(/^chatcmpl-/),
      object: 'chat.completion',
      created: expect.any(Number),
      model: 'tiny',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: 'ls' },
          finish_reason: 'stop',
          logprobs: {
            content: [
              { token: 'l', logprob: -0.5, bytes: [108], top_logprobs: [] },
              { token: 's', logprob: -0.25, bytes: [115], top_logprobs: [] },
              { token: '\n', logprob: 0, bytes: [10], top_logprobs: [] },
            ],
          },
          token_ids: [108, 115, 10],
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8, prompt_tokens_details: { cached_tokens: 2 } },
      prompt_token_ids: [...ids('go\n$ ')],
    });
  });

  it('leaves ids and log-probabilities out when they are not asked for', async () => {
    await using session = open(scriptedSampler(says('ls\n')));
    const body = (await (await post(session, ask)).json()) as { choices: object[] };
    expect(body).not.toHaveProperty('prompt_token_ids');
    expect(body.choices[0]).not.toHaveProperty('token_ids');
    expect(body.choices[0]).toHaveProperty('logprobs', null);
  });

  it('comes after the call is recorded and told', async () => {
    const told: unknown[] = [];
    await using session = open(scriptedSampler(says('ls', { promptCacheHitTokens: 3 })), {
      onCall: async (call) => void told.push([call, session.record().calls]),
    });
    await post(session, ask);
    const counts = { promptTokens: 5, cachedPromptTokens: 3, sampledTokens: 2, maskedTokens: 0, stop: 'length' };
    expect(told).toEqual([[{ callIndex: 0, ...counts, samplingMs: expect.any(Number) }, 1]]);
  });

  it('is not given when the call could not be told', async () => {
    await using session = open(scriptedSampler(says('ls\n')), { onCall: () => Promise.reject(new Error('disk full')) });
    expect(await failure(await post(session, ask))).toMatchObject({
      status: 500,
      code: 'internal_error',
      message: expect.not.stringMatching('disk'),
    });
    expect(session.record().failure).toEqual({ kind: 'internal', message: 'disk full', afterCalls: 1 });
  });
});

describe('the record', () => {
  it('has each call as it was sampled, with counts', async () => {
    const sampler = scriptedSampler(
      says('ls\n', { promptCacheHitTokens: 1 }),
      says('cp a', { logprobs: Float32Array.of(-1, -2, -3, -4), promptCacheHitTokens: 8 }),
    );
    await using session = open(sampler);
    await post(session, ask);
    await post(session, { messages: [user('go'), assistant('ls'), user('[0] a')] });
    const { spans, ...counts } = session.record();
    expect(spans).toEqual([
      {
        callIndex: 0,
        prompt: ids('go\n$ '),
        sampled: ids('ls\n'),
        logprobs: Float64Array.of(-0.5, -0.5, -0.5),
        stop: 'stop',
        sampler: 'step-0003',
      },
      {
        callIndex: 1,
        prompt: ids('go\n$ ls\n[0] a\n$ '),
        sampled: ids('cp a'),
        logprobs: Float64Array.of(-1, -2, -3, -4),
        stop: 'length',
        sampler: 'step-0003',
      },
    ]);
    expect(counts).toEqual({
      links: [
        { parentCall: null, cause: 'first', detail: null, lookAlikes: 0 },
        { parentCall: 0, cause: null, detail: null, lookAlikes: 0 },
      ],
      calls: 2,
      overflow: false,
      overflowAfterCalls: null,
      callLimited: false,
      tokenLimited: false,
      usdLimited: false,
      timeLimited: false,
      promptTokens: 21,
      cachedPromptTokens: 9,
      sampledTokens: 7,
      maskedTokens: 0,
      lengthStops: 1,
      unreadableCalls: 0,
      lookAlikes: 0,
      fragments: { first: 1 },
      wasted: { calls: 0, promptTokens: 0, sampledTokens: 0 },
      failure: null,
    });
  });

  it('masks and counts log-probabilities that are no numbers, and says null on the wire', async () => {
    const logprobs = Float32Array.of(Number.NaN, -1, Number.NEGATIVE_INFINITY, 0.5, -2);
    await using session = open(scriptedSampler(says('abcd\n', { logprobs })));
    const body = (await (await post(session, { ...ask, logprobs: true })).json()) as {
      choices: { logprobs: { content: { logprob: number | null }[] } }[];
    };
    expect(body.choices[0]?.logprobs.content.map(({ logprob }) => logprob)).toEqual([null, -1, null, null, -2]);
    expect(session.record()).toMatchObject({ maskedTokens: 3, sampledTokens: 5 });
    expect(session.record().spans[0]?.logprobs).toEqual(Float64Array.of(Number.NaN, -1, Number.NaN, Number.NaN, -2));
  });

  it('is not touched by a sampler that reuses its buffers', async () => {
    const result = says('ls\n');
    await using session = open(scriptedSampler(result));
    await post(session, ask);
    result.tokens.fill(0);
    result.logprobs.fill(0);
    expect(session.record().spans[0]).toMatchObject({ sampled: ids('ls\n'), logprobs: Float64Array.of(-0.5, -0.5, -0.5) });
  });
});
