import { describe, expect, it } from 'vitest';
import type { ChatMessage, ChatRenderer } from '../renderer.ts';
import { TemplateRefusal } from '../template/template.ts';
import { ids, textOf } from '../testing/scripted-sampler.ts';
import { fingerprintOf } from './fingerprint.ts';
import { rendererFor } from './index.ts';
import { tinyAsciiRenderer } from './tiny-ascii.ts';

const tiny = tinyAsciiRenderer();
const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });
const task = 'files key sun\ntask copy sun to map and delete key';

describe('tiny-ascii', () => {
  it.each([
    ['the first prompt', [user(task)], true, `${task}\n$ `],
    ['a whole history', [user(task), assistant('cp sun map'), user('[0]')], true, `${task}\n$ cp sun map\n[0]\n$ `],
    ['without generation prompt', [user('a'), assistant('ls')], false, 'a\n$ ls\n'],
    ['a system message', [{ role: 'system', content: 'be brief' } as const, user('a')], true, 'be brief\na\n$ '],
  ])('renders %s', async (_, messages, addGenerationPrompt, text) =>
    expect(textOf(await tiny.render(messages, { tools: [], addGenerationPrompt }))).toBe(text),
  );

  it.each([
    ['closed turn', true, '[0] 7\n$ '],
    ['turn cut by length: the glue newline first', false, '\n[0] 7\n$ '],
  ])('extends a %s by the new messages only', async (_, closed, text) => {
    const turn = { prompt: ids(`${task}\n$ `), sampled: ids(closed ? 'ls\n' : 'ls'), producedIndex: 1, closed, tools: [] };
    const extension = await tiny.extend({ ...turn, messages: [user(task), assistant('ls'), user('[0] 7')] });
    expect('delta' in extension && textOf(extension.delta)).toBe(text);
  });

  it('a turn sampled whole and a turn rendered from text give the same ids', async () => {
    const history = [user(task), assistant('cp sun map'), user('[0]')];
    const first = await tiny.render(history.slice(0, 1), { tools: [], addGenerationPrompt: true });
    const turn = { prompt: first, sampled: ids('cp sun map\n'), producedIndex: 1, closed: true, tools: [] };
    const extension = await tiny.extend({ ...turn, messages: history });
    const spliced = [...first, ...ids('cp sun map\n'), ...('delta' in extension ? extension.delta : [])];
    expect(spliced).toEqual([...(await tiny.render(history, { tools: [], addGenerationPrompt: true }))]);
  });

  it.each([
    ['plain', 'a b', 'a b'],
    ['umlaut', 'fé', 'f?'],
    ['emoji is one character', 'a🙂b', 'a?b'],
    ['control characters', 'a\tb\rc\u0000d\u007f', 'a?b?c?d?'],
    ['newline stays', 'a\nb', 'a\nb'],
    ['lone surrogate', 'a\ud800', 'a?'],
  ])('tokenizes %s', async (_, text, expected) => expect(textOf(await tiny.tokenize(text))).toBe(expected));

  it.each([
    ['closed', 'done\n', 'done'],
    ['cut', 'cp sun m', 'cp sun m'],
    ['empty', '\n', ''],
  ])('parses a %s turn without its stop token', (_, sampled, content) =>
    expect(tiny.parse(ids(sampled), { prompt: ids('a\n$ '), tools: [] })).toEqual({ content }),
  );
});

describe('fingerprint', () => {
  const other = (over: Partial<ChatRenderer>) => fingerprintOf({ ...tinyAsciiRenderer(), ...over });

  it('is the same for the same behaviour under another name', async () =>
    expect(await other({ name: 'copy', tokenizer: 'copy' })).toEqual(await tiny.fingerprint()));

  it('shows another template and other stop ids', async () => {
    const { template } = await tiny.fingerprint();
    const render: ChatRenderer['render'] = (messages) => tiny.tokenize(messages.map(({ content }) => content).join('|'));
    expect((await other({ render })).template).not.toBe(template);
    expect((await other({ stopTokens: [0] })).template).not.toBe(template);
  });

  it('of a template with tools shows how it writes calls and results', async () => {
    const withMark = (mark: string) => {
      const render: ChatRenderer['render'] = (messages, { tools }) =>
        tiny.tokenize(messages.map(({ content, toolCalls }) => content + (toolCalls && tools.length > 0 ? mark : '')).join('|'));
      return other({ noTools: null, render });
    };
    expect(await withMark('<call>')).toEqual(await withMark('<call>'));
    expect(await withMark('<call>')).not.toEqual(await withMark('<tool>'));
  });

  it('counts what a template refuses, and fails where the renderer does', async () => {
    const refusing = (error: Error) => other({ render: () => Promise.reject(error) });
    expect(await refusing(new TemplateRefusal('no system role'))).not.toEqual(await refusing(new TemplateRefusal('no tools')));
    await expect(refusing(new Error('broken'))).rejects.toThrow('broken');
  });
});

describe('rendererFor', () => {
  it.each([
    ['its name', { name: 'stillroom_tiny' }],
    ['its name and tokenizer', { name: 'stillroom_tiny', tokenizer: 'stillroom-tiny-ascii' }],
    ['the tokenizer id alone', { tokenizer: 'stillroom-tiny-ascii' }],
  ])('finds a renderer by %s', (_, model) => expect(rendererFor(model).name).toBe('stillroom_tiny'));

  it.each([
    ['an unknown name', { name: 'qwen3', model: 'big/one' }, /no renderer "qwen3".*Known: stillroom_tiny.*rollout\.renderers for big\/one/],
    ['an unknown tokenizer', { tokenizer: 'Qwen/Qwen3-8B' }, /no renderer for this model \(tokenizer "Qwen\/Qwen3-8B"\)/],
    ['a model of which nothing is known', { model: 'big/one' }, /no renderer for big\/one\. Known/],
    ['a renderer of another tokenizer', { name: 'stillroom_tiny', tokenizer: 'Qwen/Qwen3-8B' }, /but this model uses "Qwen\/Qwen3-8B"/],
  ])('refuses %s', (_, model, message) => expect(() => rendererFor(model)).toThrow(message));
});
