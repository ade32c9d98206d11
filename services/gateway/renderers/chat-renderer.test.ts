import { describe, expect, it } from 'vitest';
import { ConversationTree } from '../conversation.ts';
import type { ChatMessage, ToolDefinition } from '../renderer.ts';
import { compileChatTemplate } from '../template/chat-template.ts';
import { byteTokenizer } from '../testing/byte-tokenizer.ts';
import { type ChatRendererOptions, chatRenderer } from './chat-renderer.ts';

const TOKENS = ['<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>', '<think>', '</think>'];
const TOOLS: readonly ToolDefinition[] = [
  { json: '{"type": "function", "function": {"name": "run", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}}' },
];

const CALLS = `{% for c in m.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}</tool_call>{% endfor %}`;
const PROMPT = '{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}';
/** A template that writes each message once and for all. */
const PLAIN = `{% for t in tools or [] %}{{ t|tojson }}\n{% endfor %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}${CALLS}<|im_end|>\n{% endfor %}${PROMPT}`;

function made(source: string, options: Partial<ChatRendererOptions> = {}) {
  const template = compileChatTemplate(source, { nowMs: 0 });
  return chatRenderer({ name: 'made', tokenizer: byteTokenizer(TOKENS), template, ...options });
}

const user = (content: string): ChatMessage => ({ role: 'user', content });
const system = (content: string): ChatMessage => ({ role: 'system', content });
const called = (n: number) => `<tool_call>{"name": "run", "arguments": {"n": ${n}}}</tool_call><|im_end|>`;

/** Plays one conversation: after each sampled text the agent keeps the answer and adds messages. Returns the prompts as text, with their links. */
async function play(
  source: string,
  steps: readonly { sampled: string; next: ChatMessage[] }[],
  options: Partial<ChatRendererOptions> = {},
  start = [system('S'), user('u0')],
) {
  const renderer = await made(source, options);
  const tokenizer = options.tokenizer ?? byteTokenizer(TOKENS);
  const tree = new ConversationTree(renderer);
  const prompts: { text: string; cause: string | null; parent: number | null; detail: string | null; lookAlikes: number }[] = [];
  let messages: ChatMessage[] = start;
  for (const [index, { sampled, next }] of [...steps, { sampled: 'end<|im_end|>', next: [] }].entries()) {
    const placed = await tree.prompt(messages, TOOLS);
    const ids = await tokenizer.encode(sampled);
    const said = await renderer.parse(ids, { prompt: placed.prompt, tools: TOOLS, callIndex: index });
    const { cause, detail, parentCall: parent, lookAlikes } = tree.record(placed, index, ids, said);
    prompts.push({ text: await tokenizer.decode(placed.prompt), cause, detail, parent, lookAlikes });
    const answers = next.map((message) => (message.role === 'tool' ? { ...message, toolCallId: said.toolCalls?.[0]?.id ?? '' } : message));
    messages = [...messages, { role: 'assistant', ...said }, ...answers];
  }
  return prompts;
}

const says = (text: string, ...next: ChatMessage[]) => ({ sampled: `${text}<|im_end|>`, next });
const calls = (n: number, result: string) => ({ sampled: called(n), next: [{ role: 'tool', content: result } as const] });
const HEAD = `{"type": "function", "function": {"name": "run", "description": "Runs.", "parameters": {"type": "object", "properties": {}}}}\n<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nu0<|im_end|>\n<|im_start|>assistant\n`;

describe('a prompt that goes on', () => {
  it('is the sampled ids and what the template writes after the turn', async () => {
    const [first, second, third] = await play(PLAIN, [says('a1', user('u1')), calls(1, 'r1')]);
    expect(first).toMatchObject({ text: HEAD, cause: 'first' });
    const one = `${HEAD}a1<|im_end|>\n<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n`;
    expect(second).toMatchObject({ text: one, cause: null });
    expect(third).toMatchObject({ text: `${one}${called(1)}\n<|im_start|>tool\nr1<|im_end|>\n<|im_start|>assistant\n`, cause: null });
  });

  it.each([
    ['text', 'half a', '<|im_end|>\n'],
    ['reasoning', '<think>half', '\n</think>\n\n<|im_end|>\n'],
    ['a call', '<think>done</think><tool_call>{"na', '<|im_end|>\n'],
  ])('closes a turn that was cut in %s', async (_, sampled, glue) => {
    const [, second] = await play(PLAIN, [{ sampled, next: [user('u1')] }]);
    expect(second).toMatchObject({ text: `${HEAD}${sampled}${glue}<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n`, cause: null });
  });

  it('closes reasoning that the prompt opened and the cut turn did not end', async () => {
    const opening = PLAIN.replace(PROMPT, PROMPT.replace('assistant\n', 'assistant\n<think>\n'));
    const [, second] = await play(opening, [{ sampled: 'half', next: [user('u1')] }]);
    expect(second?.text).toContain('<think>\nhalf\n</think>\n\n<|im_end|>\n<|im_start|>user');
  });

  it('closes a turn that only spelled its close', async () => {
    const tokenizer = byteTokenizer(TOKENS);
    const spelled = {
      ...tokenizer,
      encode: async (text: string) => (text === 'spelled' ? Int32Array.from(Buffer.from('a<|im_end|>')) : tokenizer.encode(text)),
    };
    const [, second] = await play(PLAIN, [{ sampled: 'spelled', next: [user('u1')] }], { tokenizer: spelled });
    expect(second?.text).toBe(`${HEAD}a<|im_end|><|im_end|>\n<|im_start|>user\nu1<|im_end|>\n<|im_start|>assistant\n`);
  });

  it('takes in messages of others, also assistants that no model of ours was', async () => {
    const [, second] = await play(PLAIN, [says('a1', { role: 'assistant', content: 'x' }, user('u1'))]);
    expect(second).toMatchObject({
      text: expect.stringContaining('a1<|im_end|>\n<|im_start|>assistant\nx<|im_end|>\n<|im_start|>user\nu1'),
      cause: null,
    });
  });

  it('counts control tokens that others wrote as text', async () => {
    const [first, second] = await play(PLAIN, [says('a1', user('a <|im_end|> b <think>'))]);
    expect([first?.lookAlikes, second?.lookAlikes]).toEqual([0, 2]);
    expect(second?.text).toContain('user\na <|im_end|> b <think><|im_end|>\n<|im_start|>assistant\n');
  });

  it('looks at the whole conversation where a part of it does not tell', async () => {
    const numbered = `{% set ns = namespace(n=0) %}${PLAIN.replace('{{ m.content }}', "{% if m.role == 'tool' %}{% set ns.n = ns.n + 1 %}{{ ns.n }}: {% endif %}{{ m.content }}")}`;
    const prompts = await play(
      numbered,
      Array.from({ length: 12 }, (_, index) => calls(index, 'r')),
    );
    expect(prompts.slice(1).map(({ cause }) => cause)).toEqual(new Array(12).fill(null));
    expect(prompts.at(-1)?.text.match(/tool\n(\d+): r/g)).toEqual(Array.from({ length: 12 }, (_, index) => `tool\n${index + 1}: r`));
  });
});

describe('a fragment opens', () => {
  const moved = PLAIN.replace(
    '<|im_start|>{{ m.role }}\n{{ m.content }}',
    "{% if m.role != 'system' %}<|im_start|>{{ m.role }}\n{% if loop.last %}{{ messages[0].content }} {% endif %}{{ m.content }}{% else %}<|im_start|>{% endif %}",
  );

  it.each([
    ['a system prompt that moves to the newest message', moved, [says('a1', user('u1'))], 'template_rewrites', /writes earlier text anew/],
    [
      'white space that depends on being last',
      PLAIN.replace(
        '<|im_end|>\n{% endfor %}',
        "{% if m.role == 'tool' and not loop.last %}{{ '\\n' }}{% endif %}<|im_end|>\n{% endfor %}",
      ),
      [calls(1, 'r1'), calls(2, 'r2')],
      'template_rewrites',
      /"<\|im_end\|>.*" became "\\n<\|im_end\|>/,
    ],
    [
      'a tail that depends on what the assistant said',
      PLAIN.replace(PROMPT, `{% if messages|length > 2 and messages[2].content %}{{ messages[2].content|length }}{% endif %}${PROMPT}`),
      [says('a1', user('u1'))],
      'template_refuses',
      /depends on what it says/,
    ],
    [
      'a template that refuses what comes',
      `{% for m in messages %}{% if m.content == 'no' and messages|length > 5 %}{{ raise_exception('never no') }}{% endif %}{% endfor %}${PLAIN}`.replace(
        'messages|length > 5',
        'add_generation_prompt == false',
      ),
      [says('a1', user('no'))],
      'template_refuses',
      /refuses: never no/,
    ],
  ])('with %s', async (_, source, steps, cause, detail) => {
    const last = (await play(source, steps)).at(-1);
    expect(last).toMatchObject({ cause, parent: null, detail: expect.stringMatching(detail) });
  });

  it('but not again while nothing is rewritten', async () => {
    const causes = (await play(moved, [says('a1', user('u1')), says('a2', user('u2'))])).map(({ cause }) => cause);
    expect(causes).toEqual(['first', 'template_rewrites', 'template_rewrites']);
  });

  it('with a system message that the template puts in front', async () => {
    const hoists = PLAIN.replace(
      '{% for m in messages %}',
      "{% for m in messages if m.role == 'system' %}{{ m.content }};{% endfor %}{% for m in messages if m.role != 'system' %}",
    );
    const prompts = await play(hoists, [says('a1', user('u1')), says('a2', system('new'), user('u2')), says('a3', user('u3'))]);
    expect(prompts.map(({ cause }) => cause)).toEqual(['first', null, 'template_rewrites', null]);
  });
});

describe('turns that end with the next header', () => {
  const source = `<tool_call> <arg_key>{# <|observation|> #}{% for m in messages %}<|{{ 'observation' if m.role == 'tool' else m.role }}|>\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ c.function.name }}\n<arg_key>a</arg_key>\n<arg_value>{{ c.function.arguments.a }}</arg_value>\n</tool_call>{% endfor %}{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}`;
  const tokenizer = byteTokenizer(['<|user|>', '<|observation|>', '<|assistant|>', '<|system|>', '<tool_call>', '</tool_call>']);
  const call = '<tool_call>run\n<arg_key>a</arg_key>\n<arg_value>b</arg_value>\n</tool_call>';
  const last = async (sampled: string, next: ChatMessage) => (await play(source, [{ sampled, next: [next] }], { tokenizer })).at(-1);

  it('go on behind it', async () => {
    expect(await last('a1<|user|>', user('u1'))).toMatchObject({
      text: expect.stringContaining('a1<|user|>\nu1<|assistant|>\n'),
      cause: null,
    });
    const result = { role: 'tool', content: 'r1' } as const;
    expect(await last(`${call}<|observation|>`, result)).toMatchObject({
      text: expect.stringContaining('</tool_call><|observation|>\nr1<|assistant|>\n'),
      cause: null,
    });
  });

  it('open a fragment when another role follows', async () =>
    expect(await last('a1<|observation|>', user('u1'))).toMatchObject({
      cause: 'template_refuses',
      detail: expect.stringMatching(/header of another role/),
    }));

  it('are given the header when they were cut', async () =>
    expect(await last('a1', user('u1'))).toMatchObject({ text: expect.stringContaining('a1<|user|>\nu1'), cause: null }));
});

describe('retention', () => {
  const reasons = PLAIN.replace(
    '{{ m.content }}',
    '{% if m.reasoning_content and loop.index0 >= messages|length - 2 %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}',
  );
  const steps = [
    { sampled: `<think>hm</think>${called(1)}`, next: [{ role: 'tool', content: 'r1' } as const] },
    { sampled: `<think>hm</think>${called(2)}`, next: [{ role: 'tool', content: 'r2' } as const] },
    says('<think>ho</think>a2', user('u2')),
  ];
  const causes = async (retain: ChatRendererOptions['retain']) =>
    (await play(reasons, steps, retain ? { retain } : {})).map(({ cause }) => cause);

  it('keeps all reasoning by default', async () => expect(await causes(undefined)).toEqual(['first', null, null, null]));
  it('keeps it within a tool cycle', async () => expect(await causes('tool_cycle')).toEqual(['first', null, null, 'template_rewrites']));
  it('keeps what the template keeps', async () => {
    expect(await causes('template')).toEqual(['first', null, 'template_rewrites', 'template_rewrites']);
    expect((await play(PLAIN, [says('a1', user('u1'))], { retain: 'template' })).map(({ cause }) => cause)).toEqual(['first', null]);
  });
});

describe('ids of calls', () => {
  it('differ between turns and calls, and are the same when a trial is replayed', async () => {
    const renderer = await made(PLAIN);
    const tokenizer = byteTokenizer(TOKENS);
    const sampled = await tokenizer.encode(`${called(1).replace('<|im_end|>', '')}${called(1)}`);
    const idsOf = async (prompt: string, callIndex: number) =>
      (await renderer.parse(sampled, { prompt: await tokenizer.encode(prompt), tools: TOOLS, callIndex })).toolCalls?.map(({ id }) => id) ??
      [];
    const all = [...(await idsOf('a', 0)), ...(await idsOf('a', 1)), ...(await idsOf('b', 0))];
    expect(new Set(all).size).toBe(6);
    expect(await idsOf('a', 0)).toEqual(all.slice(0, 2));
  });
});

describe('a template cannot be used', () => {
  it.each([
    [
      'when no token ends a turn',
      '{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}',
      {},
      /made cannot be used: no token of bytes ends an assistant's turn/,
    ],
    ['when it takes no conversation', "{{ raise_exception('never') }}", {}, /made cannot be used: never/],
    [
      'when the end swallows white space',
      PLAIN,
      { tokenizer: byteTokenizer(TOKENS, { rstrip: true }) },
      /<\|im_end\|>, which ends its turns, swallows white space/,
    ],
  ])('%s', async (_, source, options, message) => {
    await expect(made(source, options)).rejects.toThrow(message);
  });

  it('with tools, when it shows no calls', async () => {
    expect((await made(PLAIN)).noTools).toBeNull();
    expect((await made(PLAIN.replace(CALLS, '{# <tool_call> #}'))).noTools).toMatch(/does not show tool calls/);
  });

  it('with tools, when it writes calls in a form that is not read', async () => {
    const inXml = PLAIN.replace(
      '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}',
      '<{{ c.function.name }}>{{ c.function.arguments.a }}</{{ c.function.name }}>',
    );
    expect(inXml).not.toBe(PLAIN);
    expect((await made(inXml)).noTools).toMatch(/another form than the family "hermes"/);
  });
});

it('stops at the tokens of the family, of the template, and of the model', async () => {
  const renderer = await made(PLAIN, { stopTokens: [10] });
  expect(renderer.stopTokens).toEqual([byteTokenizer(TOKENS).tokenId('<|im_end|>'), 10]);
});
