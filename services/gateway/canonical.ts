import type { ChatMessage, ParsedTurn, ToolCall, ToolDefinition } from './renderer.ts';

/**
 * How much of a turn of ours an assistant message still holds: 2 all that an agent is shown, 1 a part of it, 0 it is another message.
 * Agents may drop reasoning or put it before the text in think tags, trim white space, drop tool calls or the text beside them,
 * rename calls, and write arguments anew; only a changed text, or a call that we did not make, is an edit.
 */
export function keptOf(said: ParsedTurn, message: ChatMessage): 0 | 1 | 2 {
  const calls = callsKept(said.toolCalls ?? [], message.toolCalls ?? []);
  if (calls === 0) return 0;
  if (sameText(said, message.content)) return calls;
  const onlyCalls = message.content.trim() === '' && (message.toolCalls?.length ?? 0) > 0;
  return onlyCalls ? 1 : 0;
}

/** What makes two messages the same that are no turns of ours: role and text without outer white space; of assistants also the calls. */
export function sameMessage(one: ChatMessage, other: ChatMessage): boolean {
  if (one.role !== other.role || !sameTrimmed(one.content, other.content)) return false;
  if (one.role !== 'assistant') return true;
  const [calls, others] = [one.toolCalls ?? [], other.toolCalls ?? []];
  return calls.length === others.length && calls.every((call, index) => sameCall(call, others[index]));
}

/** A few characters that same messages share, to look among few. */
export function bucketOf({ role, content }: ChatMessage): string {
  return `${role} ${content.trim().length}`;
}

/** Tools are printed by templates as they come, so their order counts, and so does how they were written. */
export function toolsKey(tools: readonly ToolDefinition[]): string {
  return tools.map(({ json }) => json).join(' ');
}

/** 2: the same calls in the same order; 1: some of them in their order, or none at all; 0: another call is among them. */
function callsKept(ours: readonly ToolCall[], theirs: readonly ToolCall[]): 0 | 1 | 2 {
  let from = 0;
  for (const call of theirs) {
    while (from < ours.length && !sameCall(ours[from], call)) from++;
    if (from === ours.length) return 0;
    from++;
  }
  return theirs.length === ours.length ? 2 : 1;
}

function sameCall(one: ToolCall | undefined, other: ToolCall | undefined): boolean {
  if (one === undefined || other === undefined || one.name !== other.name) return false;
  return one.arguments === other.arguments || canonicalText(one.arguments) === canonicalText(other.arguments);
}

function sameText({ content, reasoning }: ParsedTurn, text: string): boolean {
  if (sameTrimmed(content, text)) return true;
  const [, thought, rest] = /^\s*<think>(.*?)<\/think>(.*)$/s.exec(text) ?? [];
  return thought !== undefined && rest !== undefined && sameTrimmed(content, rest) && sameTrimmed(reasoning ?? '', thought);
}

function sameTrimmed(one: string, other: string): boolean {
  return one === other || one.trim() === other.trim();
}

/** What is no JSON, or nested too deeply to be gone through, is only itself. */
function canonicalText(text: string): string {
  try {
    return canonicalJson(JSON.parse(text));
  } catch {
    return text;
  }
}

/** JSON with sorted keys. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (typeof value === 'object' && value !== null)
    return `{${Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field)}`)
      .join(',')}}`;
  return JSON.stringify(value);
}
