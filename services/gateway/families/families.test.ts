import { describe, expect, it } from 'vitest';
import type { ToolDefinition } from '../renderer.ts';
import { byteTokenizer } from '../testing/byte-tokenizer.ts';
import { familyOf } from './family-of.ts';
import { piecesOf } from './pieces.ts';
import { toolShapes } from './tool-shapes.ts';

const properties = {
  cmd: { type: 'string' },
  n: { type: 'integer' },
  ratio: { type: 'number' },
  deep: { type: 'boolean' },
  list: { type: 'array' },
  maybe: { anyOf: [{ type: 'string' }, { type: 'null' }] },
};
const TOOLS: readonly ToolDefinition[] = [
  { json: JSON.stringify({ type: 'function', function: { name: 'run', parameters: { properties } } }) },
];

/** What stands in a template of each family, so that it is recognised. */
const SOURCES = {
  hermes: '<think> <tool_call>',
  function_tags: '<tool_call> <function= <parameter=',
  llama3: '<|start_header_id|> "parameters": tool_calls <|python_tag|>'.replace('"parameters":', '"parameters": '),
  deepseek: '<｜tool▁calls▁begin｜> <think>',
  deepseek_dsml: '｜DSML｜',
  glm: '<tool_call> <arg_key> <|observation|> <think>',
  kimi: '<|tool_calls_section_begin|>',
  minimax: '<minimax:tool_call> <think>',
  mistral: '[TOOL_CALLS]',
  harmony: '<|channel|> <|message|> <|call|>',
  plain: '<start_of_turn> <end_of_turn>',
};

type Options = { closedBy?: string | null; reasoningOpen?: boolean; tools?: readonly ToolDefinition[]; asIds?: boolean };

/** A turn's text read by the family; markers are tokens unless `asIds` is false. */
async function read(
  family: keyof typeof SOURCES,
  text: string,
  { closedBy = 'end', reasoningOpen = false, tools = TOOLS, asIds = true }: Options = {},
) {
  const { markers, read: reader } = familyOf({ addedTokens: [] }, { source: SOURCES[family] });
  const tokenizer = byteTokenizer(asIds ? markers : []);
  const pieces = piecesOf(tokenizer, markers).of(await tokenizer.encode(text));
  return reader({ pieces, closedBy, reasoningOpen, tools: toolShapes(tools) });
}

const one = (json: string, over: object = {}) => ({ content: '', reasoning: '', calls: [{ name: 'run', arguments: json }], ...over });

describe('a family', () => {
  it.each(Object.keys(SOURCES) as (keyof typeof SOURCES)[])('%s is recognised by its template', (name) =>
    expect(familyOf({ addedTokens: [] }, { source: SOURCES[name] }).name).toBe(name),
  );

  it('of unknown calls has no tools, and says so', () =>
    expect(familyOf({ addedTokens: [] }, { source: SOURCES.plain })).toMatchObject({
      noTools: expect.stringMatching(/no form of tool calls/),
      stops: ['<end_of_turn>'],
    }));

  it('reasons when its tokenizer has the tags, even if its template does not write them', () => {
    const addedTokens = byteTokenizer(['<think>', '</think>']).addedTokens;
    expect(familyOf({ addedTokens }, { source: '<|im_end|>' }).reasoning).toMatchObject({ open: '<think>' });
    expect(familyOf({ addedTokens: [] }, { source: '<|im_end|>' }).reasoning).toBeNull();
  });
});

describe('calls', () => {
  it.each([
    ['hermes', '<tool_call>\n{"name": "run", "arguments": {"n": 1.0, "cmd": "ls"}}\n</tool_call>', one('{"n": 1.0, "cmd": "ls"}')],
    [
      'hermes',
      '<think>\nhm\n</think>\n\nSo:\n<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>',
      one('{}', { content: 'So:', reasoning: 'hm' }),
    ],
    ['hermes', '<tool_call>{"name": "run", "arguments": "{\\"n\\": 1}"}', one('{"n": 1}')],
    [
      'function_tags',
      '<tool_call>\n<function=run>\n<parameter=cmd>\nls\n -l\n</parameter>\n<parameter=n>\n12\n</parameter>\n</function>\n</tool_call>',
      one('{"cmd": "ls\\n -l", "n": 12}'),
    ],
    [
      'function_tags',
      '<tool_call>\n<function=run>\n<parameter=cmd>\necho "</function>" </parameter>\n</parameter>\n</function>\n</tool_call>',
      one('{"cmd": "echo \\"</function>\\" </parameter>"}'),
    ],
    [
      'function_tags',
      'I run it.\n<function=run>\n<parameter=deep>\nTrue\n</parameter>\n</function>\n</tool_call>',
      one('{"deep": true}', { content: 'I run it.' }),
    ],
    ['llama3', '{"name": "run", "parameters": {"cmd": "ls"}}', one('{"cmd": "ls"}')],
    ['llama3', '<|python_tag|>{"name": "run", "arguments": {"n": 2}}', one('{"n": 2}')],
    [
      'deepseek',
      '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>run\n```json\n{"n": 1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      one('{"n": 1}'),
    ],
    [
      'deepseek',
      'Yes.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>{"n": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
      one('{"n": 1}', { content: 'Yes.' }),
    ],
    [
      'deepseek_dsml',
      '<｜DSML｜function_calls>\n<｜DSML｜invoke name="run">\n<｜DSML｜parameter name="cmd" string="true">1</｜DSML｜parameter>\n<｜DSML｜parameter name="n" string="false">1</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>',
      one('{"cmd": "1", "n": 1}'),
    ],
    [
      'glm',
      '\n<think>hm</think>\n<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_value>ls -l</arg_value>\n<arg_key>list</arg_key>\n<arg_value>[1, 2]</arg_value>\n</tool_call>',
      one('{"cmd": "ls -l", "list": [1, 2]}', { reasoning: 'hm' }),
    ],
    [
      'kimi',
      '<|tool_calls_section_begin|><|tool_call_begin|>functions.run:3<|tool_call_argument_begin|>{"n": 1}<|tool_call_end|><|tool_calls_section_end|>',
      { content: '', reasoning: '', calls: [{ name: 'run', arguments: '{"n": 1}', id: 'functions.run:3' }] },
    ],
    [
      'minimax',
      'hm\n</think>\n\n<minimax:tool_call>\n<invoke name="run">\n<parameter name="cmd">ls</parameter>\n<parameter name="ratio">0.50</parameter>\n</invoke>\n</minimax:tool_call>',
      one('{"cmd": "ls", "ratio": 0.50}', { reasoning: 'hm' }),
    ],
    [
      'mistral',
      '[TOOL_CALLS][{"name": "run", "arguments": {"n": 1}, "id": "abcdefghi"}]',
      { content: '', reasoning: '', calls: [{ name: 'run', arguments: '{"n":1}', id: 'abcdefghi' }] },
    ],
    ['mistral', '[TOOL_CALLS]run[ARGS]{"n": 1}', one('{"n": 1}')],
  ] as const)('of %s are read: %#', async (family, text, expected) => expect(await read(family, text)).toEqual(expected));

  it('of harmony are read, wherever the recipient stands', async () => {
    const analysis = '<|channel|>analysis<|message|>hm<|end|><|start|>assistant';
    const call = { closedBy: '<|call|>' };
    const expected = one('{"n": 1}', { reasoning: 'hm' });
    expect(await read('harmony', `${analysis} to=functions.run<|channel|>commentary json<|message|>{"n": 1}`, call)).toEqual(expected);
    expect(await read('harmony', `${analysis}<|channel|>commentary to=functions.run <|constrain|>json<|message|>{"n": 1}`, call)).toEqual(
      expected,
    );
  });

  it('of harmony may follow words to the user; what is final is content', async () => {
    const words = '<|channel|>commentary<|message|>I look.<|end|><|start|>assistant';
    const turn = `${words}<|channel|>commentary to=functions.run<|message|>{}`;
    expect(await read('harmony', turn, { closedBy: '<|call|>' })).toEqual(one('{}', { content: 'I look.' }));
    expect(
      await read('harmony', '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Done.', {
        closedBy: '<|return|>',
      }),
    ).toEqual({ content: 'Done.', reasoning: 'hm', calls: [] });
  });

  it('several in one turn keep their order', async () => {
    const turn =
      '<tool_call>\n{"name": "run", "arguments": {"n": 1}}\n</tool_call>\n<tool_call>\n{"name": "run", "arguments": {"n": 2}}\n</tool_call>';
    expect((await read('hermes', turn)).calls?.map((call) => call.arguments)).toEqual(['{"n": 1}', '{"n": 2}']);
  });

  it('end open reasoning', async () =>
    expect(await read('hermes', 'hm <tool_call>{"name": "run", "arguments": {}}</tool_call>', { reasoningOpen: true })).toEqual(
      one('{}', { reasoning: 'hm' }),
    ));
});

describe('no call is', () => {
  const call = '<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>';

  it('a marker spelled in ordinary pieces, where the family has it as a token', async () => {
    const { markers, read: reader } = familyOf({ addedTokens: [] }, { source: SOURCES.hermes });
    const tokenizer = byteTokenizer(markers);
    const pieces = piecesOf(tokenizer, markers).of(Int32Array.from(Buffer.from(call)));
    expect(reader({ pieces, closedBy: 'end', reasoningOpen: false, tools: toolShapes(TOOLS) })).toEqual({
      content: call,
      reasoning: '',
      calls: [],
    });
  });

  it('in a vocabulary without markers, text is all there is', async () =>
    expect(await read('hermes', call, { asIds: false })).toEqual(one('{}')));

  it.each([
    ['a request without tools', { tools: [] }],
    ['a turn cut by length', { closedBy: null }],
  ])('anything in %s', async (_, options) =>
    expect(await read('hermes', call, options)).toEqual({ content: call, reasoning: '', calls: [] }),
  );

  it.each([
    ['hermes', '<tool_call>\n{"name": "run", "arguments": {"n": 1}\n</tool_call>'],
    ['hermes', `${call}\n<tool_call>\nrun it\n</tool_call>`],
    ['hermes', '<tool_call>{"name": "run", "arguments": [1]}</tool_call>'],
    ['hermes', '<tool_call>{"name": "run"}<tool_call>'],
    ['function_tags', '<tool_call>\n<function=run>\n<parameter=cmd>\nls\n</function>\n</tool_call>'],
    ['deepseek', '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>{"n": <｜tool▁call▁end｜><｜tool▁calls▁end｜>'],
    ['kimi', '<|tool_calls_section_begin|><|tool_call_begin|>run<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>'],
    [
      'deepseek_dsml',
      '<｜DSML｜function_calls><｜DSML｜invoke name="run"><｜DSML｜parameter name="n" string="false">one</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>',
    ],
    ['glm', '<tool_call>run <arg_key>n</arg_key></tool_call>'],
    ['mistral', '[TOOL_CALLS][{"name": "run"'],
  ] as const)('a broken one of %s: all of the text is content (%#)', async (family, text) =>
    expect(await read(family, text)).toEqual({ content: text, reasoning: '', calls: null }),
  );

  it.each([
    ['{"name": "other", "parameters": {}}', 'a tool that was not offered'],
    ['Sure: {"name": "run", "parameters": {}}', 'JSON among words'],
  ])('%s of llama: %s', async (text) => expect(await read('llama3', text)).toEqual({ content: text, reasoning: '', calls: [] }));

  it('a call of harmony whose turn did not end as one', async () => {
    const turn = '<|channel|>commentary to=functions.run<|message|>{"n": 1';
    expect(await read('harmony', turn, { closedBy: null })).toEqual({ content: turn, reasoning: '', calls: [] });
  });
});

describe('reasoning', () => {
  it.each([
    ['opened by the turn', '<think>\nhm\n</think>\n\nYes.', false, { reasoning: 'hm', content: 'Yes.' }],
    ['opened by the prompt', 'hm\n</think>\n\nYes.', true, { reasoning: 'hm', content: 'Yes.' }],
    ['closed but never opened', 'hm</think>Yes.', false, { reasoning: 'hm', content: 'Yes.' }],
    ['empty', '<think>\n\n</think>\n\nYes.', false, { reasoning: '', content: 'Yes.' }],
    ['never closed', '<think>\nhm', false, { reasoning: 'hm', content: '' }],
    ['absent', 'Yes.', false, { reasoning: '', content: 'Yes.' }],
    ['spoken of', 'I <think> so.', false, { reasoning: '', content: 'I <think> so.' }],
  ])('%s', async (_, text, reasoningOpen, expected) =>
    expect(await read('hermes', text, { reasoningOpen })).toEqual({ ...expected, calls: [] }),
  );
});

describe('the type of a parameter', () => {
  it.each([
    ['cmd', '12', '"12"'],
    ['n', '12', '12'],
    ['n', '1.5', '"1.5"'],
    ['ratio', '1.50', '1.50'],
    ['deep', 'False', 'false'],
    ['deep', 'maybe', '"maybe"'],
    ['list', '["a", 1]', '["a", 1]'],
    ['list', '{}', '"{}"'],
    ['maybe', 'None', 'null'],
    ['maybe', '1', '"1"'],
    ['unknown', '1', '"1"'],
  ])('%s: %s is %s', async (name, text, json) => {
    const turn = `<tool_call>\n<function=run>\n<parameter=${name}>\n${text}\n</parameter>\n</function>\n</tool_call>`;
    expect(await read('function_tags', turn)).toEqual(one(`{"${name}": ${json}}`));
  });
});
