import { describe, expect, it } from 'vitest';
import type { TrialId } from '../../core/ids.ts';
import { startGateway } from './index.ts';
import { tinyAsciiRenderer } from './renderers/tiny-ascii.ts';
import { ask, failure, gatewayFixture } from './testing/gateway-fixture.ts';
import { says, scriptedSampler } from './testing/scripted-sampler.ts';

const { url, open, post } = gatewayFixture();

describe('keys', () => {
  it('are 192 random bits for each session', async () => {
    await using one = open(scriptedSampler());
    await using other = open(scriptedSampler());
    expect(one.apiKey).not.toBe(other.apiKey);
    expect(Buffer.from(one.apiKey.replace(/^sr-/, ''), 'base64url')).toHaveLength(24);
  });

  it.each(['chat/completions', 'models'])('wrong, foreign, missing: 401 at %s, nothing sampled', async (route) => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler);
    await using other = open(scriptedSampler());
    const method = route === 'models' ? { method: 'GET' } : { method: 'POST', body: JSON.stringify(ask) };
    for (const authorization of [
      undefined,
      '',
      'Bearer ',
      'Bearer x',
      `Bearer ${other.apiKey}`,
      `Basic ${session.apiKey}`,
      `Bearer ${session.apiKey}x`,
      `Bearer ${session.apiKey.slice(0, -1)}`,
      `Bearer ${session.apiKey.slice(0, -1)}.`,
    ]) {
      const response = await fetch(`${session.apiBase}/${route}`, {
        ...method,
        headers: authorization === undefined ? {} : { authorization },
      });
      const told = await failure(response);
      expect(told).toMatchObject({ status: 401, code: 'invalid_api_key', type: 'authentication_error' });
      expect(told.message).not.toContain(session.apiKey);
    }
    expect(sampler.requests).toHaveLength(0);
  });

  it('die with the session; the record stays readable', async () => {
    const session = open(scriptedSampler(says('ls\n')));
    await post(session, ask);
    await session[Symbol.asyncDispose]();
    expect(await failure(await post(session, ask))).toMatchObject({ status: 410, code: 'trial_ended' });
    expect(session.record().calls).toBe(1);
  });

  it('of an earlier attempt do not open a later one of the same trial', async () => {
    const { trialId, ...earlier } = open(scriptedSampler());
    await earlier[Symbol.asyncDispose]?.();
    await using later = open(scriptedSampler(says('ls\n')), { trialId });
    await earlier[Symbol.asyncDispose]?.(); // a second disposal must not end the later attempt
    expect((await post(later, ask, { key: earlier.apiKey })).status).toBe(401);
    expect((await post(later, ask)).status).toBe(200);
  });
});

describe('routes', () => {
  it('list the one model with its context length', async () => {
    await using session = open(scriptedSampler());
    const response = await fetch(`${session.apiBase}/models`, { headers: { authorization: `Bearer ${session.apiKey}` } });
    expect(await response.json()).toMatchObject({ object: 'list', data: [{ id: 'tiny', object: 'model', max_model_len: 64 }] });
  });

  it.each([
    ['an unknown trial', '/t/none/v1/models', 'unknown_trial'],
    ['an unknown path', '/v1/models', 'not_found'],
  ])('%s is 404 with a body', async (_, path, code) =>
    expect(await failure(await fetch(url() + path))).toMatchObject({ status: 404, code }),
  );

  it('name the trial in the URL, under the public URL when there is one', async () => {
    await using behind = await startGateway({ host: '127.0.0.1', port: 0, publicUrl: 'http://worker-7:9000/gw/' });
    const options = {
      modelName: 'm',
      sampler: scriptedSampler(),
      renderer: tinyAsciiRenderer(),
      contextLimitTokens: 9,
      maxTokensPerCall: 9,
      temperature: 1,
    };
    expect(behind.open({ ...options, trialId: 'a/b' as TrialId }).apiBase).toBe('http://worker-7:9000/gw/t/a%2Fb/v1');
  });
});

describe('open', () => {
  it('refuses a trial that is open', async () => {
    await using session = open(scriptedSampler());
    expect(() => open(scriptedSampler(), { trialId: session.trialId })).toThrow(/open already/);
  });

  it.each([
    [{ contextLimitTokens: 0 }, /contextLimitTokens must be a positive whole number; got 0/],
    [{ maxTokensPerCall: 1.5 }, /maxTokensPerCall/],
    [{ maxCalls: -1 }, /maxCalls/],
    [{ temperature: Number.NaN }, /temperature/],
  ])('refuses %o', (over, message) => expect(() => open(scriptedSampler(), over)).toThrow(message));
});
