import type { ChatMessage, ToolDefinition } from '../renderer.ts';
import { standInFor } from './chat-forms.ts';

/** What has been found out about a turn's prompt when it was made by an extension. Never changed. */
export class SpliceMemo {
  /** Produced turns whose ids are in the prompt. */
  readonly depth: number;
  /** Number of messages before the first of them: these were rendered as a whole. */
  readonly headMessages: number;
  /** Text of the start of a window that must stay as it is. */
  readonly headText: string;
  /** Index of the produced turn before this one, and the text between the two that must stay as it is. */
  readonly previousIndex: number;
  readonly fixedText: string;
  /** The memo of the produced turn before this one. */
  readonly earlier: SpliceMemo | null;
  /** A window has given what the whole conversation gives, each time that both were rendered. */
  readonly windowed: boolean;

  constructor(fields: Omit<SpliceMemo, never>) {
    this.depth = fields.depth;
    this.headMessages = fields.headMessages;
    this.headText = fields.headText;
    this.previousIndex = fields.previousIndex;
    this.fixedText = fields.fixedText;
    this.earlier = fields.earlier;
    this.windowed = fields.windowed;
  }
}

/** Messages to render, with the places of produced turns: those before, and the one that is extended. */
export type View = {
  readonly messages: readonly ChatMessage[];
  readonly earlier: readonly number[];
  readonly produced: number;
  readonly tools: readonly ToolDefinition[];
};

type Asked = { readonly messages: readonly ChatMessage[]; readonly producedIndex: number; readonly tools: readonly ToolDefinition[] };

/** A head of at most this many messages is rendered whole in every window. */
const SHORT_HEAD_MESSAGES = 8;

/** The messages of a window's head: all of a short one; of a long one the system messages and the first message after them. */
export function headOfWindow(messages: readonly ChatMessage[], headMessages: number): readonly ChatMessage[] {
  if (headMessages <= SHORT_HEAD_MESSAGES) return messages.slice(0, headMessages);
  const first = messages.findIndex(({ role }) => role !== 'system');
  return messages.slice(0, Math.min(first + 1, headMessages));
}

/**
 * A part of the conversation that the template should treat like all of it: its head, the round of the newest user message (templates
 * look for it), and everything from the produced turn before the one that is extended. Rendering it does not grow with the conversation.
 */
export function windowView({ messages, producedIndex, tools }: Asked, memo: SpliceMemo | null): View {
  const headMessages = memo?.headMessages ?? producedIndex;
  const head = headOfWindow(messages, headMessages);
  const from = memo?.previousIndex ?? producedIndex;
  const round = memo === null ? [] : newestUserRound(messages, head.length, from, producedIndex);
  const shown = [...head, ...round];
  return {
    messages: [...shown, ...messages.slice(from)],
    earlier: memo === null ? [] : [shown.length],
    produced: shown.length + producedIndex - from,
    tools: standInFor(tools),
  };
}

/** The whole conversation with every produced turn whose ids are in the prompt. */
export function wholeView({ messages, producedIndex, tools }: Asked, memo: SpliceMemo | null): View {
  return { messages, earlier: chainOf(memo).map(({ previousIndex }) => previousIndex), produced: producedIndex, tools };
}

/** Memos of a fragment, the oldest first. */
export function chainOf(memo: SpliceMemo | null): SpliceMemo[] {
  const chain: SpliceMemo[] = [];
  for (let at = memo; at !== null; at = at.earlier) chain.unshift(at);
  return chain;
}

/** From the assistant turn before the newest user message up to that message; nothing when the window shows it anyway. */
function newestUserRound(messages: readonly ChatMessage[], head: number, from: number, producedIndex: number): readonly ChatMessage[] {
  let user = producedIndex - 1;
  while (user >= head && messages[user]?.role !== 'user') user--;
  if (user < head || user >= from) return [];
  let start = user - 1;
  while (start > head && messages[start]?.role !== 'assistant') start--;
  return messages.slice(Math.max(start, head), user + 1);
}
