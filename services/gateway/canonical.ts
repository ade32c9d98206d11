import type { ChatMessage, ToolDefinition } from './renderer.ts';

/**
 * What makes two messages the same message, as one string: role, text without outer whitespace, tool calls by name and parsed
 * arguments. Agents re-serialise history, so call ids, key order, JSON spacing and reasoning do not count.
 */
export function messageKey({ role, content, toolCalls }: ChatMessage): string {
  const calls = toolCalls?.length ? canonicalJson(toolCalls.map((call) => [call.name, parsedArguments(call.arguments)])) : '';
  return `${role}\0${calls}\0${content.trim()}`;
}

/** Tools are printed by templates as they come, so their order counts; spacing and key order inside do not reach a template. */
export function toolsKey(tools: readonly ToolDefinition[]): string {
  return tools.length === 0 ? '' : JSON.stringify(tools);
}

function parsedArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** JSON with sorted keys. A NUL in a string is escaped, so the result never holds the separator of `messageKey`. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`)
      .join(',')}}`;
  return JSON.stringify(value);
}
