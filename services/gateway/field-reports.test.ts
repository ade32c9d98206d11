import { describe, expect, it } from 'vitest';
import { ask, assistant, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { ids, says, scriptedSampler, textOf } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

it('a sampler answer whose ids and log-probs differ in length: an error of that call, nothing recorded, the tokens counted as wasted', async () => {
  await using session = open(scriptedSampler(says('ls\n', { logprobs: Float32Array.of(-1, -1) }), says('ls\n')));
  expect(await failure(await post(session, ask))).toMatchObject({ status: 502, code: 'model_failed' });
  expect(session.record()).toMatchObject({ calls: 0, wasted: { calls: 1, promptTokens: 5, sampledTokens: 3 } });
  expect((await post(session, ask)).status).toBe(200);
});

it('a prompt of window + 17: refused with both numbers in the words that agents look for, and not clipped', async () => {
  const sampler = scriptedSampler(says('x'));
  await using session = open(sampler);
  const told = await failure(await post(session, { messages: [user('x'.repeat(64 + 17 - 3))] }));
  expect(told).toMatchObject({ status: 400, code: 'context_length_exceeded', param: 'messages' });
  expect(told.message).toMatch(/maximum context length is 64 tokens.*81 input tokens.*reduce the length of the messages/);
  expect(sampler.requests).toHaveLength(0);
  expect(session.record()).toMatchObject({ overflow: true, calls: 0 });
});

it('a turn cut by max_tokens: told as such, recorded without an end that nobody sampled, and closed in the next prompt', async () => {
  const sampler = scriptedSampler(says('cp sun'), says('ok\n'));
  await using session = open(sampler);
  const response = await post(session, { ...ask, max_tokens: 6, return_token_ids: true });
  expect(await response.json()).toMatchObject({
    choices: [{ message: { content: 'cp sun' }, finish_reason: 'length', token_ids: [...ids('cp sun')] }],
    usage: { completion_tokens: 6 },
  });
  expect(session.record()).toMatchObject({ lengthStops: 1, spans: [{ sampled: ids('cp sun'), stop: 'length' }] });
  await post(session, { messages: [user('go'), assistant('cp sun'), user('on')] });
  expect(textOf(sampler.requests[1]?.prompt ?? ids(''))).toBe('go\n$ cp sun\non\n$ ');
});

it('a stream aborted half way: the sample is wasted, not recorded, and the next request of the agent works', async () => {
  const slow = Promise.withResolvers<void>();
  const broken: unknown[] = [];
  const sampler = scriptedSampler(
    // The book of paid calls wants the answer, so this sampler does not break off.
    ({ signal }) => {
      signal?.addEventListener('abort', () => broken.push(signal.reason));
      return slow.promise.then(() => says('ls\n'));
    },
    says('cp\n'),
  );
  await using session = open(sampler);
  const leaving = new AbortController();
  const response = await post(session, { ...ask, stream: true }, { signal: leaving.signal });
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  expect(Buffer.from((await reader.read()).value ?? []).toString()).toBe(': ping\n\n');
  leaving.abort();
  await expect.poll(() => broken.length).toBe(1);
  const retry = await post(session, { ...ask, stream: true });
  expect(await retry.text()).toContain('"content":"cp"');
  slow.resolve();
  await expect.poll(() => session.record().wasted).toEqual({ calls: 1, promptTokens: 5, sampledTokens: 3 });
  expect(session.record()).toMatchObject({ calls: 1, fragments: { first: 1 }, failure: null });
});

describe('an agent that sends the same turn twice', () => {
  const second = { messages: [user('go'), assistant('ls'), user('[0]')] };

  it('one after the other: two answers to one prompt, of which it may continue either', async () => {
    const sampler = scriptedSampler(says('ls\n'), says('one\n'), says('two\n'), says('end\n'));
    await using session = open(sampler);
    await post(session, ask);
    for (const _ of [1, 2]) await post(session, second);
    await post(session, { messages: [...second.messages, assistant('one'), user('[1]')] });
    const { spans, links, fragments } = session.record();
    expect(spans[2]?.prompt).toEqual(spans[1]?.prompt);
    expect(links.map(({ parentCall, cause }) => [parentCall, cause])).toEqual([
      [null, 'first'],
      [0, null],
      [0, 'retry'],
      [1, null],
    ]);
    expect(textOf(spans[3]?.prompt ?? ids(''))).toBe('go\n$ ls\n[0]\n$ one\n[1]\n$ ');
    expect(fragments).toEqual({ first: 1, retry: 1 });
  });

  it('while the first is still under way: both are sampled from one prompt, recorded in the order of their answers', async () => {
    const slow = Promise.withResolvers<void>();
    const sampler = scriptedSampler(says('ls\n'), () => slow.promise.then(() => says('slow\n')), says('fast\n'), says('end\n'));
    await using session = open(sampler);
    await post(session, ask);
    const first = post(session, second);
    await expect.poll(() => sampler.requests.length).toBe(2);
    expect((await post(session, second)).status).toBe(200);
    slow.resolve();
    expect((await first).status).toBe(200);
    await post(session, { messages: [...second.messages, assistant('slow'), user('[1]')] });
    const { spans, links } = session.record();
    expect(spans.map(({ sampled }) => textOf(sampled))).toEqual(['ls\n', 'fast\n', 'slow\n', 'end\n']);
    expect(spans[2]?.prompt).toEqual(spans[1]?.prompt);
    expect(links.map(({ parentCall, cause }) => [parentCall, cause])).toEqual([
      [null, 'first'],
      [0, null],
      [0, 'retry'],
      [2, null],
    ]);
    expect(textOf(spans[3]?.prompt ?? ids(''))).toBe('go\n$ ls\n[0]\n$ slow\n[1]\n$ ');
  });
});
