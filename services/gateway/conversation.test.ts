import { describe, expect, it } from 'vitest';
import { keptOf, sameMessage } from './canonical.ts';
import { ConversationTree } from './conversation.ts';
import type { ChatMessage, ChatRenderer, ToolDefinition } from './renderer.ts';
import { tinyAsciiRenderer } from './renderers/tiny-ascii.ts';
import { ids, textOf } from './testing/scripted-sampler.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });

/** Each step asks with a conversation and samples a text. Returns the prompts as text with their links. */
async function play(
  steps: { ask: ChatMessage[]; sampled: string; tools?: ToolDefinition[] }[],
  renderer: ChatRenderer = tinyAsciiRenderer(),
) {
  const tree = new ConversationTree(renderer);
  const seen = [];
  for (const [index, { ask, sampled, tools = [] }] of steps.entries()) {
    const placed = await tree.prompt(ask, tools);
    const link = tree.record(placed, index, ids(sampled), await renderer.parse(ids(sampled), { prompt: placed.prompt, tools }));
    seen.push({ prompt: textOf(placed.prompt), ...link });
  }
  return seen;
}

const first = { ask: [user('u1')], sampled: 'a1\n' };
const second = { ask: [user('u1'), assistant('a1'), user('u2')], sampled: 'a2\n' };

describe('a later call', () => {
  it('continues the newest turn of its history', async () => {
    const third = { ask: [...second.ask, assistant('a2'), user('u3')], sampled: 'a3\n' };
    expect(await play([first, second, third])).toEqual([
      { prompt: 'u1\n$ ', parentCall: null, cause: 'first', detail: null, lookAlikes: 0 },
      { prompt: 'u1\n$ a1\nu2\n$ ', parentCall: 0, cause: null, detail: null, lookAlikes: 0 },
      { prompt: 'u1\n$ a1\nu2\n$ a2\nu3\n$ ', parentCall: 1, cause: null, detail: null, lookAlikes: 0 },
    ]);
  });

  it('keeps sampled ids that the agent trimmed, and closes a turn that was cut', async () => {
    const [, next] = await play([
      { ask: [user('u1')], sampled: '  a1 ' },
      { ask: [user('u1'), assistant('a1'), user('u2')], sampled: 'a2\n' },
    ]);
    expect(next).toMatchObject({ prompt: 'u1\n$   a1 \nu2\n$ ', parentCall: 0, cause: null });
  });

  it.each([
    ['the same messages again at the start', [first, first], { prompt: 'u1\n$ ', parentCall: null, cause: 'retry' }],
    ['the same messages again later', [first, second, second], { prompt: 'u1\n$ a1\nu2\n$ ', parentCall: 0, cause: 'retry' }],
    [
      'another continuation of a continued turn',
      [first, second, { ask: [user('u1'), assistant('a1'), user('x')], sampled: 'y\n' }],
      { prompt: 'u1\n$ a1\nx\n$ ', parentCall: 0, cause: 'branch' },
    ],
    [
      'its only turn edited',
      [first, { ask: [user('u1'), assistant('edited'), user('u2')], sampled: 'y\n' }],
      { prompt: 'u1\n$ edited\nu2\n$ ', parentCall: null, cause: 'edited_history' },
    ],
    [
      'its newest turn edited: goes on from the one before',
      [first, second, { ask: [...second.ask, assistant('edited'), user('u3')], sampled: 'y\n' }],
      { prompt: 'u1\n$ a1\nu2\n$ edited\nu3\n$ ', parentCall: 0, cause: 'edited_history' },
    ],
    [
      'an earlier user message edited',
      [first, { ask: [user('other'), assistant('a1'), user('u2')], sampled: 'y\n' }],
      { prompt: 'other\n$ a1\nu2\n$ ', parentCall: null, cause: 'edited_history' },
    ],
    [
      'a history that became shorter',
      [first, second, { ask: [user('u1'), user('what was done')], sampled: 'y\n' }],
      { prompt: 'u1\nwhat was done\n$ ', parentCall: null, cause: 'compaction' },
    ],
    [
      'the newest turns of ours behind another start',
      [first, second, { ask: [user('start'), assistant('a2')], sampled: 'y\n' }],
      { prompt: 'start\n$ a2\n$ ', parentCall: null, cause: 'compaction' },
    ],
    [
      'a conversation of its own',
      [first, { ask: [user('title?'), assistant('an example'), user('x')], sampled: 'y\n' }],
      { prompt: 'title?\n$ an example\nx\n$ ', parentCall: null, cause: 'no_match' },
    ],
    [
      'other tools',
      [first, { ...second, tools: [{ json: '{"type":"function"}' }] }],
      { prompt: 'u1\n$ a1\nu2\n$ ', parentCall: null, cause: 'tools_changed' },
    ],
  ])('with %s opens a fragment', async (_, steps, last) => expect((await play(steps)).at(-1)).toMatchObject(last));

  it('says why, when the template cannot be extended', async () => {
    const renderer = { ...tinyAsciiRenderer(), extend: () => ({ refused: 'no close found' }) };
    expect((await play([first, second], renderer)).at(-1)).toEqual({
      prompt: 'u1\n$ a1\nu2\n$ ',
      parentCall: null,
      cause: 'template_refuses',
      detail: 'no close found',
      lookAlikes: 0,
    });
  });

  it('with the same text at another place of the conversation is not taken for ours', async () => {
    const [, next] = await play([first, { ask: [user('u0'), assistant('a0'), user('u1'), assistant('a1'), user('u2')], sampled: 'y\n' }]);
    expect(next).toMatchObject({ parentCall: null, cause: 'edited_history' });
  });
});

it('two conversations side by side each continue their own turn', async () => {
  const side = { ask: [user('s1')], sampled: 'b1\n' };
  const sideNext = { ask: [user('s1'), assistant('b1'), user('s2')], sampled: 'b2\n' };
  const links = (await play([first, side, second, sideNext])).map(({ parentCall, cause }) => [parentCall, cause]);
  expect(links).toEqual([
    [null, 'first'],
    [null, 'no_match'],
    [0, null],
    [1, null],
  ]);
});

it('encodes only what is new since the newest turn', async () => {
  const tiny = tinyAsciiRenderer();
  const extended: number[] = [];
  const renderer: ChatRenderer = {
    ...tiny,
    extend: (request) => {
      extended.push(request.messages.length - request.producedIndex - 1);
      return tiny.extend(request);
    },
  };
  const steps = [first];
  let ask = first.ask;
  for (let turn = 1; turn < 20; turn++) {
    ask = [...ask, assistant(`a${turn}`), user(`u${turn}`)];
    steps.push({ ask, sampled: `a${turn + 1}\n` });
  }
  await play(steps, renderer);
  expect(extended).toEqual(new Array(19).fill(1));
});

it('a turn that was sampled twice goes on from the one that the later messages follow', async () => {
  const third = [...second.ask, assistant('a2'), user('u3')];
  const links = await play([first, second, first, first, { ask: third, sampled: 'a3\n' }, { ask: second.ask, sampled: 'b\n' }]);
  expect(links.map(({ parentCall, cause }) => [parentCall, cause])).toEqual([
    [null, 'first'],
    [0, null],
    [null, 'retry'],
    [null, 'retry'],
    [1, null], // a2 was said after the first a1 only
    [3, null], // nothing tells the three a1 apart: the newest
  ]);
});

it('other tools for a conversation of its own are no change of tools', async () => {
  const side = { ask: [user('title?')], sampled: 't\n', tools: [{ json: '{"type":"function"}' }] };
  expect((await play([first, side])).at(-1)).toMatchObject({ parentCall: null, cause: 'no_match' });
});

it('says whether the template refuses, or rewrites what it said', async () => {
  const renderer: ChatRenderer = { ...tinyAsciiRenderer(), extend: () => ({ refused: 'moved', rewrites: true }) };
  expect((await play([first, second], renderer)).at(-1)).toMatchObject({ parentCall: null, cause: 'template_rewrites', detail: 'moved' });
});

describe('a turn of ours', () => {
  const call = (id: string, name: string, text: string) => ({ id, name, arguments: text });
  const said = { content: 'do it', reasoning: 'hm', toolCalls: [call('1', 'f', '{"a": 1, "b": [2]}'), call('2', 'g', '{}')] };
  const plain = { content: ' a ', reasoning: 'hm' };

  it.each([
    ['all of it', said, { ...assistant('do it'), toolCalls: said.toolCalls }, 2],
    [
      'calls renamed and written anew',
      said,
      { ...assistant('do it'), toolCalls: [call('x', 'f', '{"b":[2],"a":1}'), call('y', 'g', '{ }')] },
      2,
    ],
    ['white space', plain, assistant('a\n'), 2],
    ['reasoning before the text', plain, assistant('<think>\nhm\n</think>\n\na'), 2],
    ['no calls', said, assistant('do it'), 1],
    ['an empty list of calls', said, { ...assistant('do it'), toolCalls: [] }, 1],
    ['one of its calls', said, { ...assistant('do it'), toolCalls: [call('2', 'g', '{}')] }, 1],
    ['calls without the text', said, { ...assistant(''), toolCalls: said.toolCalls }, 1],
  ])('is recognised by %s', (_, ours, message, kept) => expect(keptOf(ours, message)).toBe(kept));

  it.each([
    ['other text', plain, assistant('b')],
    ['inner white space', { content: 'a b' }, assistant('a  b')],
    ['other reasoning before the text', plain, assistant('<think>ho</think>a')],
    ['nothing left', plain, assistant('')],
    ['another argument', said, { ...assistant('do it'), toolCalls: [call('1', 'f', '{"a": 2, "b": [2]}')] }],
    ['another name', said, { ...assistant('do it'), toolCalls: [call('1', 'h', '{}')] }],
    ['calls in another order', said, { ...assistant('do it'), toolCalls: said.toolCalls.toReversed() }],
    ['a call more', plain, { ...assistant('a'), toolCalls: [call('1', 'f', '{}')] }],
    ['broken arguments', said, { ...assistant('do it'), toolCalls: [call('1', 'f', '{"a": 1')] }],
  ])('is not recognised by %s', (_, ours, message) => expect(keptOf(ours, message)).toBe(0));
});

describe('a message of others', () => {
  it.each([
    ['outer white space', user(' a\n'), user('a')],
    ['reasoning', { ...assistant('a'), reasoning: 'hm' }, assistant('a')],
    ['ids of calls', { ...user('a'), role: 'tool' as const, toolCallId: '1' }, { ...user('a'), role: 'tool' as const, toolCallId: '2' }],
  ])('is the same with other %s', (_, one, other) => expect(sameMessage(one, other)).toBe(true));

  it.each([
    ['role', assistant('a'), user('a')],
    ['text', user('a  b'), user('a b')],
    ['call', { ...assistant(''), toolCalls: [{ id: '1', name: 'f', arguments: '{}' }] }, assistant('')],
  ])('is another with another %s', (_, one, other) => expect(sameMessage(one, other)).toBe(false));
});
