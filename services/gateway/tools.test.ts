import { describe, expect, it } from 'vitest';
import { TemplateRefusal } from './template/template.ts';
import { byteIds, byteRenderer, wordId } from './testing/byte-renderer.ts';
import { failure, gatewayFixture, user } from './testing/gateway-fixture.ts';
import { scriptedSampler } from './testing/scripted-sampler.ts';
import type { SampleResult } from './token-sampler.ts';

const { open, post } = gatewayFixture();
const renderer = byteRenderer();
const roomy = { renderer, contextLimitTokens: 4096, maxTokensPerCall: 512 };

const sampled = (...parts: (string | number)[]): SampleResult => {
  const tokens = Int32Array.from(parts.flatMap((part) => (typeof part === 'number' ? part : [...byteIds(part)])));
  const logprobs = new Float32Array(tokens.length).fill(-0.5);
  return { tokens, logprobs, stop: tokens.at(-1) === 10 ? 'stop' : 'length', promptCacheHitTokens: 0 };
};
const promptText = (sampler: ReturnType<typeof scriptedSampler>, call: number) =>
  Buffer.from(sampler.requests[call]?.prompt ?? []).toString();

type Answer = {
  choices: [{ message: Record<string, unknown>; finish_reason: string; logprobs: { content: { token: string; bytes: number[] }[] } }];
};
const answerOf = async (response: Response) => ((await response.json()) as Answer).choices[0];

describe('tools', () => {
  const TOOL = '{"type": "function", "function": {"name": "bash", "x": {"b": 1.0, "10": 1e3, "2": 12345678901234567890}}}';

  it('reach the template as the agent wrote them', async () => {
    const sampler = scriptedSampler(sampled('ok\n'));
    await using session = open(sampler, roomy);
    await post(
      session,
      `{"tools": [ ${TOOL} ], "messages": [{"role": "user", "content": "say \\"tools\\": [] go"}], "tool_choice": "auto"}`,
    );
    expect(promptText(sampler, 0)).toBe(`${TOOL}\nuser: say "tools": [] go\n> `);
  });

  it('are not shown to a model that may choose none', async () => {
    const sampler = scriptedSampler(sampled('ok\n'));
    await using session = open(sampler, roomy);
    await post(session, `{"tools": [${TOOL}], "tool_choice": "none", "messages": [{"role": "user", "content": "go"}]}`);
    expect(promptText(sampler, 0)).toBe('user: go\n> ');
  });

  it('calls come with reasoning, text or null, and their arguments as text; the agent sends them back and the ids go on', async () => {
    const turn = '<think>hm</think>!bash {"cmd":"ls"};!bash {};\n';
    const sampler = scriptedSampler(sampled(turn), sampled('done\n'));
    await using session = open(sampler, roomy);
    const tools = [JSON.parse(TOOL)];
    const { message, finish_reason } = await answerOf(await post(session, { messages: [user('go')], tools }));
    expect([message, finish_reason]).toEqual([
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'hm',
        tool_calls: [
          { id: 'call-0', type: 'function', function: { name: 'bash', arguments: '{"cmd":"ls"}' } },
          { id: 'call-1', type: 'function', function: { name: 'bash', arguments: '{}' } },
        ],
      },
      'tool_calls',
    ]);
    const results = ['call-0', 'call-1'].map((id) => ({ role: 'tool', tool_call_id: id, content: [{ type: 'text', text: id }] }));
    await post(session, { messages: [user('go'), message, ...results], tools });
    expect(promptText(sampler, 1)).toBe(`${promptText(sampler, 0)}${turn}tool: call-0\ntool: call-1\n> `);
    expect(session.record().fragments).toEqual({ first: 1 });
  });

  it.each(['reasoning_content', 'reasoning', 'thinking'])('of an answer that was not ours, %s is rendered', async (key) => {
    const sampler = scriptedSampler(sampled('ok\n'));
    await using session = open(sampler, roomy);
    await post(session, { messages: [user('a'), { role: 'assistant', content: 'b', [key]: 'why' }, user('c')] });
    expect(promptText(sampler, 0)).toBe('user: a\nassistant: <think>why</think>b\nuser: c\n> ');
  });

  it('in a stream: reasoning, text, and each call with its index, id and name once', async () => {
    await using session = open(scriptedSampler(sampled('<think>hm</think>so:!bash {"a":1};!cat {};\n')), roomy);
    const response = await post(session, { messages: [user('go')], tools: [JSON.parse(TOOL)], stream: true, return_token_ids: true });
    const chunks = (await response.text())
      .split('\n\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice(6)));
    expect(chunks.map(({ choices: [{ delta }] }) => delta)).toEqual([
      { role: 'assistant', content: '' },
      { reasoning_content: 'hm' },
      { content: 'so:' },
      { tool_calls: [{ index: 0, id: 'call-0', type: 'function', function: { name: 'bash', arguments: '{"a":1}' } }] },
      { tool_calls: [{ index: 1, id: 'call-1', type: 'function', function: { name: 'cat', arguments: '{}' } }] },
      {},
    ]);
    expect(chunks.map(({ choices: [{ finish_reason }] }) => finish_reason)).toEqual([null, null, null, null, null, 'tool_calls']);
    expect(chunks.filter((chunk) => 'prompt_token_ids' in chunk)).toHaveLength(1);
    expect(chunks.flatMap(({ choices: [{ token_ids = [] }] }) => token_ids)).toEqual([...(session.record().spans[0]?.sampled ?? [])]);
  });
});

describe('a template', () => {
  it('that refuses the messages is told to the agent in its own words, and is no failure of the model', async () => {
    const refuses = () => {
      throw new TemplateRefusal('roles must alternate');
    };
    const sampler = scriptedSampler(sampled('ok\n'));
    await using session = open(sampler, { ...roomy, renderer: { ...renderer, render: refuses } });
    expect(await failure(await post(session, { messages: [user('a'), user('b')] }))).toMatchObject({
      status: 400,
      code: 'invalid_request',
      param: 'messages',
      message: expect.stringContaining('roles must alternate'),
    });
    expect(sampler.requests).toHaveLength(0);
    expect(session.record()).toMatchObject({ calls: 0, failure: null });
  });

  it('counts calls that cannot be read, and control tokens that users wrote', async () => {
    const odd = { ...renderer, parse: () => ({ content: 'x', callsUnreadable: true as const }), lookAlikes: () => 2 };
    await using session = open(scriptedSampler(sampled('ok\n')), { ...roomy, renderer: odd });
    expect(await answerOf(await post(session, { messages: [user('a')] }))).toMatchObject({
      message: { content: 'x' },
      finish_reason: 'stop',
    });
    expect(session.record()).toMatchObject({ calls: 1, unreadableCalls: 1, lookAlikes: 2 });
  });
});

describe('tokens on the wire', () => {
  it('have the exact bytes of parts of characters', async () => {
    await using session = open(scriptedSampler(sampled('é', wordId('();'), '\n')), roomy);
    const { logprobs } = await answerOf(await post(session, { messages: [user('go')], logprobs: true }));
    expect(logprobs.content.map(({ token, bytes }) => [token, bytes])).toEqual([
      ['\ufffd', [0xc3]],
      ['\ufffd', [0xa9]],
      ['();', [0x28, 0x29, 0x3b]],
      ['\n', [10]],
    ]);
  });
});

describe('a stop string of several tokens', () => {
  it('ends the turn where it is complete: what came after is paid for, but neither shown nor kept, and the turn is closed for the next', async () => {
    const sampler = scriptedSampler(sampled('ls STOP and more\n'), sampled('ok\n'));
    await using session = open(sampler, roomy);
    const body = { messages: [user('go')], stop: ['STOP'], return_token_ids: true };
    const response = await post(session, body);
    expect(await response.json()).toMatchObject({
      choices: [{ message: { content: 'ls ' }, finish_reason: 'stop', token_ids: [...byteIds('ls STOP')] }],
      usage: { completion_tokens: 7 },
    });
    expect(sampler.requests[0]?.stopTokens).toEqual([10]);
    expect(session.record()).toMatchObject({
      calls: 1,
      sampledTokens: 7,
      lengthStops: 0,
      wasted: { calls: 0, promptTokens: 0, sampledTokens: 10 },
    });
    expect(session.record().spans[0]).toMatchObject({ sampled: byteIds('ls STOP'), stop: 'stop' });

    await post(session, { messages: [user('go'), { role: 'assistant', content: 'ls' }, user('on')] });
    expect(promptText(sampler, 1)).toBe('user: go\n> ls STOP\nuser: on\n> ');
    expect(session.record().fragments).toEqual({ first: 1 });
  });

  it('that does not come changes nothing', async () => {
    await using session = open(scriptedSampler(sampled('ls\n')), roomy);
    expect(await answerOf(await post(session, { messages: [user('go')], stop: 'never' }))).toMatchObject({ message: { content: 'ls' } });
    expect(session.record()).toMatchObject({ sampledTokens: 3, wasted: { sampledTokens: 0 } });
  });
});
