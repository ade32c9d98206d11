import type { ChatMessage, ToolDefinition } from '../renderer.ts';
import { type ChatTemplate, type TemplateMessage, TemplateRefusal } from '../template/template.ts';

/** How assistant messages with tool calls are handed to a template; templates take different ones. */
export type CallForm = {
  readonly argumentsAs: 'object' | 'text';
  /** Their text: as it is, left out as null, or left out as the empty string. */
  readonly content: 'kept' | 'null' | 'empty';
  /** Text beside calls and reasoning goes into the reasoning, for templates that refuse to take both. */
  readonly mergesReasoning: boolean;
};

const form = (argumentsAs: CallForm['argumentsAs'], content: CallForm['content']): CallForm => ({
  argumentsAs,
  content,
  mergesReasoning: false,
});

/** In the order in which they are tried. */
export const CALL_FORMS: readonly CallForm[] = [
  form('object', 'kept'),
  form('text', 'kept'),
  form('object', 'null'),
  form('text', 'null'),
  form('object', 'empty'),
];

/** A small tool in place of a request's tools where only the places of things matter, not the tools' own text. */
const STAND_IN: ToolDefinition = {
  json: JSON.stringify({
    type: 'function',
    function: {
      name: 'stand_in',
      description: 'Stands in.',
      parameters: { type: 'object', properties: { a: { type: 'string', description: 'A.' } }, required: ['a'] },
    },
  }),
};

export function standInFor(tools: readonly ToolDefinition[]): readonly ToolDefinition[] {
  return tools.length === 0 ? [] : [STAND_IN];
}

/** Messages as the template takes them. */
export function inForm(messages: readonly ChatMessage[], form: CallForm): TemplateMessage[] {
  return messages.map((message) => (message.toolCalls?.length ? callInForm(message, form) : message));
}

/** An assistant message with `word` in place of what it ends with: its text, or the only argument of its last call. */
export function anchored(message: ChatMessage, word: string): ChatMessage {
  const { role, content, toolCalls } = message;
  const last = toolCalls?.at(-1);
  if (toolCalls === undefined || last === undefined) return { role, content: word };
  return { role, content, toolCalls: [...toolCalls.slice(0, -1), { ...last, arguments: JSON.stringify({ a: word }) }] };
}

/** The template's text, or null and its reason when it refuses the conversation. */
export function tryRender(template: ChatTemplate, input: Parameters<ChatTemplate['render']>[0]): { text: string } | { refused: string } {
  try {
    return { text: template.render(input) };
  } catch (cause) {
    if (cause instanceof TemplateRefusal) return { refused: cause.message };
    throw cause;
  }
}

function callInForm(message: ChatMessage, { argumentsAs, content, mergesReasoning }: CallForm): TemplateMessage {
  const moved = mergesReasoning && message.reasoning && message.content;
  const asIs = moved ? { ...message, reasoning: `${message.reasoning}\n\n${message.content}`, content: '' } : message;
  if (content === 'kept') return { ...asIs, argumentsAs };
  return { ...asIs, argumentsAs, content: '', emptyContentAs: content === 'null' ? 'null' : 'text' };
}
