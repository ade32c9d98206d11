import { blockCalls, outsideText } from './blocks.ts';
import type { CallParser, CallText, Piece } from './family.ts';
import { jsonArguments, jsonCall } from './json-call.ts';
import { raw } from './pieces.ts';
import { argumentJson, objectJson } from './tool-shapes.ts';

/** Hermes, Qwen2.5, Qwen3: a JSON object between tags. */
export const hermesCalls = blockCalls('<tool_call>', '</tool_call>', (block) => one(jsonCall(raw(block))));

/** GLM-4.5 and later: the name, then keys and values in tags; a string is raw, everything else is JSON. */
export const argumentTagCalls = blockCalls('<tool_call>', '</tool_call>', (block, tools) => {
  const [, name, rest] = /^\s*([^\s<]+)\s*(.*)$/s.exec(raw(block)) ?? [];
  if (name === undefined || rest === undefined) return null;
  const fields: [string, string][] = [];
  const left = rest.replace(/<arg_key>(.*?)<\/arg_key>\s*<arg_value>(.*?)<\/arg_value>\s*/gs, (_, key: string, value: string) => {
    fields.push([key.trim(), argumentJson(value, tools.get(name)?.get(key.trim()))]);
    return '';
  });
  return left.trim() === '' ? [{ name, arguments: objectJson(fields) }] : null;
});

/** Kimi-K2: the model names its calls `functions.<name>:<number>`, and templates print that name again. */
export const kimiCalls = blockCalls('<|tool_calls_section_begin|>', '<|tool_calls_section_end|>', (section) =>
  callsIn(section, ['<|tool_call_begin|>', '<|tool_call_end|>'], (call) => {
    const [head, body] = halves(call, '<|tool_call_argument_begin|>');
    const name = /^(?:functions\.)?(.+):\d+$/.exec(head.trim())?.[1];
    return name === undefined ? null : withArguments(name, body, head.trim());
  }),
);

/** DeepSeek V3 and R1 write `function<sep>name` and fenced JSON, V3.1 writes `name<sep>` and bare JSON. */
export const deepSeekCalls = blockCalls('<｜tool▁calls▁begin｜>', '<｜tool▁calls▁end｜>', (section) =>
  callsIn(section, ['<｜tool▁call▁begin｜>', '<｜tool▁call▁end｜>'], (call) => {
    const [head, body] = halves(call, '<｜tool▁sep｜>');
    const fenced = /^([^\n]+)\n```json\n(.*)\n```\s*$/s.exec(body);
    return fenced ? withArguments((fenced[1] ?? '').trim(), fenced[2] ?? '') : withArguments(head.trim(), body);
  }),
);

/** Llama 3: the whole turn is one JSON object that names a tool of the request; nothing marks it. */
export const bareJsonCall: CallParser = (pieces, tools) => {
  const plain = { content: raw(pieces), calls: [] };
  const marked = pieces[0]?.marker && pieces[0].text === '<|python_tag|>';
  const call = jsonCall(raw(marked ? pieces.slice(1) : pieces), ['parameters', 'arguments']);
  return call && tools.has(call.name) ? { content: '', calls: [call] } : plain;
};

/** Mistral: a JSON list of calls after one marker, or name and arguments after a marker each. */
export const mistralCalls: CallParser = (pieces) => {
  const first = pieces.findIndex(({ text, marker }) => marker && text === '[TOOL_CALLS]');
  if (first === -1) return { content: raw(pieces), calls: [] };
  const calls: CallText[] = [];
  for (const text of raw(pieces.slice(first + 1)).split('[TOOL_CALLS]')) {
    const found = text.trimStart().startsWith('[') ? jsonList(text) : one(namedArguments(text));
    if (found === null) return null;
    calls.push(...found);
  }
  return { content: raw(pieces.slice(0, first)).trim(), calls };
};

function one(call: CallText | null): CallText[] | null {
  return call === null ? null : [call];
}

function withArguments(name: string, json: string, id?: string): CallText | null {
  const read = jsonArguments(json);
  return read === null || name === '' ? null : { name, arguments: read, ...(id === undefined ? {} : { id }) };
}

function namedArguments(text: string): CallText | null {
  const [, name = '', id, json = ''] = /^\s*([^\s[]+)(?:\[CALL_ID\]([^[]*))?\[ARGS\](.*)$/s.exec(text) ?? [];
  return withArguments(name, json, id);
}

function jsonList(text: string): CallText[] | null {
  try {
    const values: unknown = JSON.parse(text);
    if (!Array.isArray(values) || values.length === 0) return null;
    const calls = values.map((value) => jsonCall(JSON.stringify(value)));
    return calls.every((call) => call !== null) ? calls : null;
  } catch {
    return null;
  }
}

/** Every piece of a section belongs to a call, apart from white space. */
function callsIn(
  section: readonly Piece[],
  [open, close]: readonly [string, string],
  read: (call: readonly Piece[]) => CallText | null,
): CallText[] | null {
  const found = blockCalls(open, close, (call) => one(read(call)))(section, new Map());
  if (found === null || found.calls.length === 0 || outsideText([found.content]) !== '') return null;
  return [...found.calls];
}

function halves(pieces: readonly Piece[], separator: string): [string, string] {
  const at = pieces.findIndex(({ text, marker }) => marker && text === separator);
  return at === -1 ? ['', ''] : [raw(pieces.slice(0, at)), raw(pieces.slice(at + 1))];
}
