import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compileChatTemplate, loadChatTemplate, type TemplateOptions } from './chat-template.ts';
import { readTokenizerConfig } from './config.ts';
import { type TemplateInput, type TemplateMessage, TemplateRefusal } from './template.ts';

let root: string;
let folders = 0;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'stillroom-template-'));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

function folderWith(files: Readonly<Record<string, unknown>>): string {
  const folder = join(root, String(folders++));
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

const NOW: TemplateOptions = { nowMs: 0 };
const EMPTY: TemplateInput = { messages: [], tools: [], addGenerationPrompt: false };
const TOOL = { json: '{"10": 1.0, "2": 12345678901234567890}' };
const called = (more: Partial<TemplateMessage>): TemplateMessage => ({ role: 'assistant', content: '', ...more });
const call = (json: string) => [{ id: 'c1', name: 'f', arguments: json }];
const render = (source: string, input: Partial<TemplateInput>, options = NOW) =>
  compileChatTemplate(source, options).render({ ...EMPTY, ...input });

test('messages have the keys that transformers gives them', () => {
  const messages: TemplateMessage[] = [
    { role: 'user', content: 'hi' },
    called({ content: 'x', reasoning: 'why', toolCalls: call('{"a":1}') }),
    { role: 'tool', content: 'out', toolCallId: 'c1' },
  ];
  expect(render('{{ messages | tojson }}', { messages })).toBe(
    '[{"role": "user", "content": "hi"}, {"thinking": "why", "role": "assistant", "content": "x", "reasoning_content": "why", ' +
      '"tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}]}, ' +
      '{"role": "tool", "content": "out", "tool_call_id": "c1"}]',
  );
});

test('arguments are an object, a text when asked for, and stay a text when they are no object', () => {
  const source = '{% for m in messages %}{{ m.tool_calls[0].function.arguments | tojson }};{% endfor %}';
  const messages = [
    called({ toolCalls: call('{ "b":1.0,"10":2 }') }),
    called({ toolCalls: call('{ "b":1.0 }'), argumentsAs: 'text' }),
    called({ toolCalls: call('{"cut') }),
    called({ toolCalls: call('[1]') }),
  ];
  expect(render(source, { messages })).toBe('{"b": 1.0, "10": 2};"{ \\"b\\":1.0 }";"{\\"cut";"[1]";');
});

test('empty content is an empty text, or null when asked for', () => {
  const messages = [called({}), called({ emptyContentAs: 'null' }), called({ content: 'x', emptyContentAs: 'null' })];
  expect(render('{% for m in messages %}{{ m.content is none }} {% endfor %}', { messages })).toBe('False True False ');
});

test('tools keep the order of their keys and the form of their numbers; no tools are None', () => {
  expect(render('{{ tools | tojson }}', { tools: [TOOL, TOOL] })).toBe(`[${TOOL.json}, ${TOOL.json}]`);
  expect(render('{{ tools is none }}', {})).toBe('True');
});

test('the date is that of nowMs in UTC', () => {
  const nowMs = Date.UTC(2026, 0, 31, 23, 59);
  expect(render('{{ strftime_now("%d %b %Y, %Y-%m-%d %H:%M") }}', {}, { nowMs })).toBe('31 Jan 2026, 2026-01-31 23:59');
  expect(() => render('{{ strftime_now("%Q") }}', {}, { nowMs })).toThrow('"%Q" is not a directive known here');
});

test("the template's own arguments and special tokens are variables; an argument goes before a token", () => {
  const options = {
    nowMs: 0,
    kwargs: { enable_thinking: false, eos_token: '<e>' },
    specialTokens: { bos_token: '<b>', eos_token: '</s>' },
  };
  expect(render('{{ bos_token }}{{ enable_thinking }}{{ eos_token }}', {}, options)).toBe('<b>False<e>');
  expect(() => compileChatTemplate('', { nowMs: 0, kwargs: { tools: [] } })).toThrow('cannot have the name "tools"');
});

test("a template's own refusal is told in its words, any other failure as one of the template", () => {
  expect(() => render('{{ raise_exception("one call only") }}', {})).toThrow(new TemplateRefusal('one call only'));
  expect(() => render('{{ messages.x.y }}', {})).toThrow(TemplateRefusal);
  expect(() => render('{{ messages.x.y }}', {})).toThrow("the chat template fails on this conversation: 'messages.x' is undefined");
  expect(() => compileChatTemplate('{% if %}', NOW)).toThrow();
});

test.each([
  ['does not end', '{% for a in range(3000) %}{% for b in range(3000) %}{% endfor %}{% endfor %}', 'more than 5000000 rounds'],
  [
    'chooses without end',
    '{% for a in range(3000) %}{% for b in range(3000) if false %}{% endfor %}{% endfor %}',
    'more than 5000000 rounds',
  ],
  ['counts very far', '{% for i in range(10**9) %}{% endfor %}', 'Range too big'],
])('a template that %s is stopped', (_, source, message) => {
  expect(() => render(source, {})).toThrow(message);
});

test('chat_template.jinja goes before the config; special tokens are texts or objects', async () => {
  const config = {
    chat_template: 'old',
    bos_token: { content: '<b>', lstrip: false },
    eos_token: '<e>',
    pad_token: null,
    add_bos_token: true,
  };
  const folder = folderWith({
    'tokenizer_config.json': config,
    'chat_template.jinja': '{{ bos_token }}{{ eos_token }}',
    'generation_config.json': { eos_token_id: [7, 9] },
  });
  expect(await readTokenizerConfig(folder)).toMatchObject({ specialTokens: { bos_token: '<b>', eos_token: '<e>' }, eosTokenIds: [7, 9] });
  expect((await loadChatTemplate(folder, NOW)).render(EMPTY)).toBe('<b><e>');
  const plain = folderWith({ 'tokenizer_config.json': config, 'generation_config.json': { eos_token_id: 7 } });
  expect(await readTokenizerConfig(plain)).toMatchObject({ eosTokenIds: [7] });
  expect((await loadChatTemplate(plain, NOW)).render(EMPTY)).toBe('old');
});

test.each([
  [
    'in the config',
    {
      'tokenizer_config.json': {
        chat_template: [
          { name: 'default', template: 'plain' },
          { name: 'tool_use', template: 'with "tools"' },
        ],
      },
    },
  ],
  ['in files', { 'chat_template.jinja': 'plain', 'additional_chat_templates/tool_use.jinja': 'with "tools"' }],
])('a template of its own for tools is taken when there are tools: %s', async (_, files) => {
  const template = await loadChatTemplate(folderWith(files), NOW);
  expect(template.render(EMPTY)).toBe('plain');
  expect(template.render({ ...EMPTY, tools: [TOOL] })).toBe('with "tools"');
  expect(template.source).toContain('with "tools"');
});

test.each([
  ['no template', { 'tokenizer_config.json': {} }, 'no chat template in chat_template.jinja'],
  ['half a config', { 'tokenizer_config.json': '{"chat' }, 'tokenizer_config.json: not whole'],
  ['a template that is none', { 'chat_template.jinja': '{% for %}' }, 'chat_template.jinja: '],
  ['no default', { 'tokenizer_config.json': { chat_template: [{ name: 'rag', template: '' }] } }, 'none of them is "default"'],
  ['a token that is none', { 'tokenizer_config.json': { chat_template: '', eos_token: 7 } }, 'tokenizer_config.json: eos_token is neither'],
  ['a list of texts', { 'tokenizer_config.json': { chat_template: ['x'] } }, 'chat_template'],
])('%s is refused by file and field', async (_, files, message) => {
  await expect(loadChatTemplate(folderWith(files), NOW)).rejects.toThrow(message);
});
