import { describe, expect, it } from 'vitest';
import { messageKey } from './canonical.ts';
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
      { prompt: 'u1\n$ ', parentCall: null, cause: 'first', detail: null },
      { prompt: 'u1\n$ a1\nu2\n$ ', parentCall: 0, cause: null, detail: null },
      { prompt: 'u1\n$ a1\nu2\n$ a2\nu3\n$ ', parentCall: 1, cause: null, detail: null },
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
    ['the same messages again at the start', [first, first], { prompt: 'u1\n$ ', parentCall: null, cause: 'branch' }],
    ['the same messages again later', [first, second, second], { prompt: 'u1\n$ a1\nu2\n$ ', parentCall: 0, cause: 'branch' }],
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
      'a conversation of its own',
      [first, { ask: [user('title?')], sampled: 'y\n' }],
      { prompt: 'title?\n$ ', parentCall: null, cause: 'no_match' },
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

describe('messageKey', () => {
  const call = (id: string, name: string, text: string): ChatMessage => ({ ...assistant(''), toolCalls: [{ id, name, arguments: text }] });

  it.each([
    ['outer whitespace', assistant(' a\n'), assistant('a')],
    ['reasoning', { ...assistant('a'), reasoning: 'hm' }, assistant('a')],
    ['call ids, key order, spacing', call('1', 'f', '{"a": 1, "b": [2]}'), call('2', 'f', '{"b":[2],"a":1}')],
  ])('does not look at %s', (_, one, other) => expect(messageKey(one)).toBe(messageKey(other)));

  it.each([
    ['inner whitespace', assistant('a  b'), assistant('a b')],
    ['the role', assistant('a'), user('a')],
    ['the called name', call('1', 'f', '{}'), call('1', 'g', '{}')],
    ['an argument', call('1', 'f', '{"a":1}'), call('1', 'f', '{"a":2}')],
    ['arguments that are no JSON', call('1', 'f', '{a'), call('1', 'f', '{b')],
    ['calls and text that look alike', call('1', 'f', '{}'), assistant('[["f",{}]]\0')],
  ])('looks at %s', (_, one, other) => expect(messageKey(one)).not.toBe(messageKey(other)));
});
