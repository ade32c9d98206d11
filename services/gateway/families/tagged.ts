import { blockCalls } from './blocks.ts';
import type { CallParser, CallText, Piece } from './family.ts';
import { raw } from './pieces.ts';
import { argumentJson, objectJson, type ParameterTypes, type ToolShapes } from './tool-shapes.ts';

/** Tags around a call and around each of its parameters. The patterns match an opening tag where they are applied (sticky). */
type Tags = { readonly call: RegExp; readonly callEnd: string; readonly parameter: RegExp; readonly parameterEnd: string };

/** The JSON of a parameter's text, given the groups of its opening tag. */
type JsonOf = (text: string, types: ParameterTypes | undefined, tag: Readonly<Record<string, string | undefined>>) => string;

const FUNCTION: Tags = {
  call: /<function=(?<name>[^>\n]+)>/y,
  callEnd: '</function>',
  parameter: /<parameter=(?<name>[^>\n]+)>/y,
  parameterEnd: '</parameter>',
};
const INVOKE: Tags = {
  call: /<invoke name="(?<name>[^"\n]+)">/y,
  callEnd: '</invoke>',
  parameter: /<parameter name="(?<name>[^"\n]+)">/y,
  parameterEnd: '</parameter>',
};
const DSML: Tags = {
  call: /<｜DSML｜invoke name="(?<name>[^"\n]+)">/y,
  callEnd: '</｜DSML｜invoke>',
  parameter: /<｜DSML｜parameter name="(?<name>[^"\n]+)" string="(?<string>true|false)">/y,
  parameterEnd: '</｜DSML｜parameter>',
};

/** Qwen3-Coder and Qwen3.5: values are raw text with one newline at each side, their types come from the tool's schema. */
export const functionTagCalls: CallParser = (pieces, tools) =>
  blockCalls('<tool_call>', '</tool_call>', readWith(FUNCTION, schemaValue(oneNewlineOff)))(withOpener(pieces, tools), tools);

/** MiniMax-M2: values are raw text, their types come from the tool's schema. */
export const invokeTagCalls: CallParser = blockCalls(
  '<minimax:tool_call>',
  '</minimax:tool_call>',
  readWith(
    INVOKE,
    schemaValue((text) => text),
  ),
);

/** DeepSeek V3.2: each value says whether it is a string or JSON. */
export const dsmlCalls: CallParser = blockCalls(
  '<｜DSML｜function_calls>',
  '</｜DSML｜function_calls>',
  readWith(DSML, (text, _, { string }) => (string === 'true' ? JSON.stringify(text) : text)),
);

function schemaValue(trimmed: (text: string) => string): JsonOf {
  return (text, types) => argumentJson(trimmed(text), types);
}

/** A model may leave out `<tool_call>` before the name of a tool that it knows. */
function withOpener(pieces: readonly Piece[], tools: ToolShapes): readonly Piece[] {
  const first = pieces[0];
  if (first === undefined || first.marker || pieces.some(({ text, marker }) => marker && text === '<tool_call>')) return pieces;
  const at = first.text.search(/<function=/);
  const name = /^<function=([^>\n]+)>/.exec(first.text.slice(Math.max(at, 0)))?.[1];
  if (at < 0 || name === undefined || !tools.has(name)) return pieces;
  const [before, call] = [first.text.slice(0, at), first.text.slice(at)];
  return [{ text: before, marker: false }, { text: '<tool_call>', marker: true }, { text: call, marker: false }, ...pieces.slice(1)];
}

function readWith(tags: Tags, jsonOf: JsonOf) {
  return (block: readonly Piece[], tools: ToolShapes): CallText[] | null => {
    const text = raw(block).trim();
    const calls: CallText[] = [];
    let at = 0;
    while (at < text.length) {
      const call = readCall(text, at, tags, { tools, jsonOf });
      if (call === null) return null;
      calls.push({ name: call.name, arguments: call.json });
      at = skipSpace(text, call.end);
    }
    return calls;
  };
}

function readCall(text: string, from: number, tags: Tags, { tools, jsonOf }: { tools: ToolShapes; jsonOf: JsonOf }) {
  const opening = matchAt(tags.call, text, from);
  if (opening === null) return null;
  const { name = '' } = opening.groups;
  const types = tools.get(name);
  const fields: [string, string][] = [];
  let at = skipSpace(text, opening.end);
  while (!text.startsWith(tags.callEnd, at)) {
    const parameter = matchAt(tags.parameter, text, at);
    const end = parameter === null ? -1 : valueEnd(text, parameter.end, tags);
    if (parameter === null || end === -1) return null;
    const { name: key = '' } = parameter.groups;
    const json = jsonOf(text.slice(parameter.end, end), types?.get(key), parameter.groups);
    if (!isJson(json)) return null;
    fields.push([key, json]);
    at = skipSpace(text, end + tags.parameterEnd.length);
  }
  return { name, json: objectJson(fields), end: at + tags.callEnd.length };
}

/** A value may hold the text of its own closing tag: the one that counts is followed by another parameter, or by the call's end. */
function valueEnd(text: string, from: number, tags: Tags): number {
  for (let end = text.indexOf(tags.parameterEnd, from); end !== -1; end = text.indexOf(tags.parameterEnd, end + 1)) {
    const next = skipSpace(text, end + tags.parameterEnd.length);
    if (matchAt(tags.parameter, text, next)) return end;
    if (!text.startsWith(tags.callEnd, next)) continue;
    const after = skipSpace(text, next + tags.callEnd.length);
    if (after === text.length || matchAt(tags.call, text, after)) return end;
  }
  return -1;
}

function matchAt(pattern: RegExp, text: string, at: number) {
  const sticky = new RegExp(pattern);
  sticky.lastIndex = at;
  const match = sticky.exec(text);
  return match === null ? null : { groups: match.groups ?? {}, end: at + match[0].length };
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text.charAt(at))) at++;
  return at;
}

function oneNewlineOff(text: string): string {
  return text.replace(/^\n/, '').replace(/\n$/, '');
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
