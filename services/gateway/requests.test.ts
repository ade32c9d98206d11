import { describe, expect, it } from 'vitest';
import { ask, assistant, failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { ids, says, scriptedSampler, textOf } from './testing/scripted-sampler.ts';

const { open, post } = gatewayFixture();

describe('a request', () => {
  const tool = { type: 'function', function: { name: 'bash' } };
  it.each<[string, unknown, string | null, RegExp]>([
    ['that is no JSON', '{', null, /not valid JSON/],
    ['without messages', { messages: [] }, 'messages', /at least one/],
    ['with an unknown role', { messages: [{ role: 'robot', content: 'x' }] }, 'messages.0.role', /Invalid option/],
    ['with an image', { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: {} }] }] }, 'messages.0.content', /only text/],
    ['ending in an assistant message', { messages: [user('a'), assistant('b')] }, 'messages', /last message is from the assistant/],
    ['for two choices', { ...ask, n: 2 }, 'n', /only n = 1/],
    ['at another temperature', { ...ask, temperature: 0 }, 'temperature', /samples at 1, but the request asks for 0/],
    ['with tools', { ...ask, tools: [tool] }, 'tools', /"stillroom_tiny": its conversations are commands/],
    [
      'with a tool result',
      { messages: [user('a'), { role: 'tool', content: 'x', tool_call_id: '1' }] },
      'messages.1',
      /"stillroom_tiny": its conversations/,
    ],
    ['for no tokens', { ...ask, max_tokens: 0 }, 'max_tokens', /Too small/],
    ['with an empty stop string', { ...ask, stop: ['ab', ''] }, 'stop.1', /must not be empty/],
    ['with too many stop strings', { ...ask, stop: new Array(65).fill('ab') }, 'stop', /at most 64/],
    ['with a stop string that is long', { ...ask, stop: 'a'.repeat(1025) }, 'stop.0', /1024 characters/],
    ['with several bad messages: the first', { messages: [user('a'), 1, 2] }, 'messages.1', /expected object/],
    ['that forces a tool call', { ...ask, tool_choice: 'required' }, 'tool_choice', /cannot be forced/],
    ['that forces a tool', { ...ask, tool_choice: { type: 'function', function: { name: 'bash' } } }, 'tool_choice', /cannot be forced/],
    ['with functions', { ...ask, functions: [{ name: 'bash' }] }, 'functions', /send them as tools/],
    ['with another kind of tool', { ...ask, tools: [{ type: 'web_search' }] }, 'tools.0.type', /only tools of type "function"/],
    ['for JSON', { ...ask, response_format: { type: 'json_object' } }, 'response_format.type', /cannot be held to a format/],
    [
      'with tool arguments that are no text',
      { messages: [{ role: 'assistant', tool_calls: [{ id: '1', function: { name: 'f', arguments: {} } }] }, user('x')] },
      'messages.0.tool_calls.0.function.arguments',
      /string of JSON/,
    ],
  ])('%s is refused by name and samples nothing', async (_, body, param, message) => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler);
    expect(await failure(await post(session, body))).toMatchObject({
      status: 400,
      type: 'invalid_request_error',
      param,
      message: expect.stringMatching(message),
    });
    expect(sampler.requests).toHaveLength(0);
    expect(session.record()).toMatchObject({ calls: 0, failure: null });
  });

  it.each([
    [
      'text parts',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'text', text: 'g' },
              { type: 'text', text: 'o' },
            ],
          },
        ],
      },
      'go\n$ ',
    ],
    ['a developer message', { messages: [{ role: 'developer', content: 'be brief' }, user('go')] }, 'be brief\ngo\n$ '],
    ['null content', { messages: [user('go'), { role: 'assistant', content: null }, user('on')] }, 'go\n$ \non\n$ '],
    [
      "keys it does not know, empty tools, the run's temperature",
      {
        ...ask,
        top_p: 0.5,
        top_k: 3,
        seed: 1,
        tools: [],
        temperature: 1,
        top_logprobs: 5,
        session_id: 's',
        parallel_tool_calls: true,
        x: {},
      },
      'go\n$ ',
    ],
  ])('with %s is read', async (_, body, prompt) => {
    const sampler = scriptedSampler(says('ls\n'));
    await using session = open(sampler);
    expect((await post(session, body)).status).toBe(200);
    expect(sampler.requests.map((request) => textOf(request.prompt))).toEqual([prompt]);
    expect(sampler.requests[0]).toMatchObject({ temperature: 1, stopTokens: [10] });
  });

  it('with a one-token stop string samples with it; the agent does not see it, the next prompt keeps it', async () => {
    const sampler = scriptedSampler(says('ls;', { stop: 'stop' }), says('ok\n'));
    await using session = open(sampler);
    const body = await (await post(session, { ...ask, stop: [';'] })).json();
    expect(body).toMatchObject({ choices: [{ message: { content: 'ls' }, finish_reason: 'stop' }] });
    expect(sampler.requests[0]?.stopTokens).toEqual([10, 59]);
    await post(session, { messages: [user('go'), assistant('ls'), user('on')] });
    expect(textOf(sampler.requests[1]?.prompt ?? ids(''))).toBe('go\n$ ls;\non\n$ ');
  });

  it.each([
    ['small', 'go', 200, undefined],
    ['larger than the limit', 'x'.repeat(5000), 413, 'request_too_large'],
  ])('%s, with a declared length or in chunks, gets %i', async (_, text, status, code) => {
    await using session = open(scriptedSampler(says('ls\n')));
    const body = { messages: [user(text)] };
    const chunked = new Blob([JSON.stringify(body)]).stream();
    const headers = { authorization: `Bearer ${session.apiKey}` };
    const answers = [
      await post(session, body),
      await fetch(`${session.apiBase}/chat/completions`, { method: 'POST', headers, body: chunked, duplex: 'half' }),
    ];
    for (const answer of answers) expect([answer.status, (await failure(answer)).code]).toEqual([status, code]);
  });
});

describe('the context limit', () => {
  it.each([
    ['what the agent asks', 10, { max_tokens: 4 }, 4],
    ['max_completion_tokens before max_tokens', 10, { max_tokens: 4, max_completion_tokens: 5 }, 5],
    ["the trial's limit per call", 10, { max_tokens: 400 }, 16],
    ["the trial's limit when nothing is asked", 10, {}, 16],
    ['the room that is left', 61, { max_tokens: 16 }, 3],
    ['one token at the very end', 63, { max_tokens: 16 }, 1],
  ])('max_tokens is %s', async (_, promptTokens, asked, maxTokens) => {
    const sampler = scriptedSampler(says('x'));
    await using session = open(sampler);
    expect((await post(session, { messages: [user('x'.repeat(promptTokens - 3))], ...asked })).status).toBe(200);
    expect(sampler.requests[0]).toMatchObject({ maxTokens });
    expect(sampler.requests[0]?.prompt).toHaveLength(promptTokens);
    expect(session.record().overflow).toBe(false);
  });

  it('a prompt that leaves no room is told in the words that agents look for, before anything is sampled', async () => {
    const sampler = scriptedSampler(says('x'));
    await using session = open(sampler);
    const response = await post(session, { messages: [user('x'.repeat(61))] });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      error: {
        message:
          "This model's maximum context length is 64 tokens. However, your request has 64 input tokens. Please reduce the length of the messages.",
        type: 'invalid_request_error',
        param: 'messages',
        code: 'context_length_exceeded',
      },
    });
    expect(sampler.requests).toHaveLength(0);
    expect(session.record()).toMatchObject({ overflow: true, overflowAfterCalls: 0, calls: 0, failure: null });
  });
});
