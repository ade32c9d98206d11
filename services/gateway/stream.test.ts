import { describe, expect, it } from 'vitest';
import { SamplerUnavailable } from './index.ts';
import { ask, failure, gatewayFixture } from './testing/gateway-fixture.ts';
import { ids, says, scriptedSampler } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

describe('a stream', () => {
  const lines = async (response: Response) => (await response.text()).split('\n\n').filter(Boolean);
  const data = (line: string): unknown => JSON.parse(line.replace(/^data: /, ''));

  it('has role, message, finish reason, usage, and ids where vLLM puts them', async () => {
    await using session = open(scriptedSampler(says('ls\n')));
    const response = await post(session, {
      ...ask,
      stream: true,
      stream_options: { include_usage: true },
      return_token_ids: true,
      logprobs: true,
    });
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const [role, message, finish, usage, done] = await lines(response);
    expect(data(role ?? '')).toMatchObject({
      object: 'chat.completion.chunk',
      choices: [{ delta: { role: 'assistant' }, finish_reason: null }],
      prompt_token_ids: [...ids('go\n$ ')],
    });
    expect(data(message ?? '')).toMatchObject({
      choices: [
        { delta: { content: 'ls' }, token_ids: [108, 115, 10], logprobs: { content: [{ token: 'l' }, { token: 's' }, { token: '\n' }] } },
      ],
    });
    expect(data(finish ?? '')).toMatchObject({ choices: [{ delta: {}, finish_reason: 'stop' }] });
    expect(data(usage ?? '')).toMatchObject({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 3 } });
    expect(done).toBe('data: [DONE]');
    expect(session.record().calls).toBe(1);
  });

  it('that fails at once is an HTTP error like any other', async () => {
    await using session = open(scriptedSampler(new SamplerUnavailable('down')));
    expect(await failure(await post(session, { ...ask, stream: true }))).toMatchObject({ status: 503, code: 'model_unavailable' });
  });

  it.each([
    ['an answer', () => says('ls\n'), 'data: [DONE]'],
    ['an error', () => new Error('broken'), expect.stringContaining('"code":"model_failed"')],
  ])('that waits is kept alive until there is %s', async (_, outcome, last) => {
    const slow = Promise.withResolvers<void>();
    const sampler = scriptedSampler(async () => {
      await slow.promise;
      const step = outcome();
      if (step instanceof Error) throw step;
      return step;
    });
    await using session = open(sampler);
    const response = await post(session, { ...ask, stream: true });
    expect(response.status).toBe(200);
    slow.resolve();
    const got = await lines(response);
    expect(got[0]).toBe(': ping');
    expect(got.at(-1)).toEqual(last);
  });
});
