import type { ToolCall } from '../renderer.ts';
import { fromJson } from './jinja/from-json.ts';
import { boolean, dict, isDict, list, NONE, text, type Value } from './jinja/values.ts';
import type { TemplateInput, TemplateMessage } from './template.ts';

/** The variables that a chat template is given for one conversation, as transformers gives them. */
export function variablesOf({ messages, tools, addGenerationPrompt }: TemplateInput): Map<string, Value> {
  return new Map<string, Value>([
    ['messages', list(messages.map(messageValue))],
    ['tools', tools.length === 0 ? NONE : list(tools.map(({ json }) => readOnce(json)))],
    ['documents', NONE],
    ['add_generation_prompt', boolean(addGenerationPrompt)],
  ]);
}

/** Names that a template's own arguments cannot have. */
export const RESERVED = ['messages', 'tools', 'documents', 'add_generation_prompt'];

function messageValue(message: TemplateMessage): Value {
  const { role, content, reasoning, toolCalls, toolCallId } = message;
  const fields = new Map<string, Value>();
  // transformers copies reasoning to the names that templates read it by: `thinking` in gpt-oss, `reasoning_content` elsewhere.
  if (reasoning !== undefined) fields.set('thinking', text(reasoning));
  fields.set('role', text(role));
  fields.set('content', content === '' && message.emptyContentAs === 'null' ? NONE : text(content));
  if (reasoning !== undefined) fields.set('reasoning_content', text(reasoning));
  if (toolCalls !== undefined && toolCalls.length > 0) fields.set('tool_calls', list(toolCalls.map((call) => callValue(call, message))));
  if (toolCallId !== undefined) fields.set('tool_call_id', text(toolCallId));
  return dict(fields);
}

function callValue({ id, name, arguments: json }: ToolCall, { argumentsAs }: TemplateMessage): Value {
  const called = dict(
    new Map<string, Value>([
      ['name', text(name)],
      ['arguments', argumentsAs === 'text' ? text(json) : argumentsValue(json)],
    ]),
  );
  return dict(
    new Map<string, Value>([
      ['id', text(id)],
      ['type', text('function')],
      ['function', called],
    ]),
  );
}

/** Arguments as an object; a text that is no JSON object stays the text that the model wrote. */
function argumentsValue(json: string): Value {
  try {
    const value = readOnce(json);
    return isDict(value) ? value : text(json);
  } catch (error) {
    if (error instanceof SyntaxError) return text(json);
    throw error;
  }
}

/**
 * Tools, and the arguments of earlier turns, come with every request of a conversation. Templates cannot change values, so what was read
 * once is used again. What is read may take thirty times the memory of its text, so about a million characters are kept.
 */
const known = new Map<string, Value>();
const KNOWN_CHARACTERS = 1_000_000;
const LONGEST_KNOWN = 16_384;
let knownCharacters = 0;

function readOnce(json: string): Value {
  const before = known.get(json);
  if (before !== undefined) return before;
  if (json.length > LONGEST_KNOWN) return fromJson(json);
  if (knownCharacters + json.length > KNOWN_CHARACTERS) {
    known.clear();
    knownCharacters = 0;
  }
  const own = structuredClone(json); // a part of a text holds the whole of it: the request's body
  const value = fromJson(own);
  known.set(own, value);
  knownCharacters += own.length;
  return value;
}
