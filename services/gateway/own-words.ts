import type { PlacedTurn } from './message-tree.ts';
import type { ChatMessage, ParsedTurn } from './renderer.ts';

/**
 * The conversation with our turns as they were sampled instead of what the agent kept of them, so that a template sees calls that the
 * agent left out, and reasoning. Tool messages are given the ids of the calls that they answer.
 */
export function asSampled(messages: readonly ChatMessage[], last: PlacedTurn | null): readonly ChatMessage[] {
  if (last === null) return messages;
  const own = [...messages];
  for (let placed: PlacedTurn | null = last; placed !== null; placed = placed.before) {
    const { turn, index } = placed;
    own[index] = spoken(turn.said);
    for (let at = index + 1, nth = 0; own[at]?.role === 'tool'; at++, nth++)
      own[at] = answering(own[at] as ChatMessage, { said: turn.said, kept: messages[index], nth });
  }
  return own;
}

function spoken({ content, reasoning, toolCalls }: ParsedTurn): ChatMessage {
  return {
    role: 'assistant',
    content,
    ...(reasoning === undefined ? {} : { reasoning }),
    ...(toolCalls === undefined ? {} : { toolCalls }),
  };
}

/** By our own id; else by the place of the agent's id among the calls that it kept; else by the order of the tool messages. */
function answering(
  message: ChatMessage,
  { said, kept, nth }: { readonly said: ParsedTurn; readonly kept: ChatMessage | undefined; readonly nth: number },
): ChatMessage {
  const ours = said.toolCalls ?? [];
  const { toolCallId } = message;
  if (ours.length === 0 || ours.some(({ id }) => id === toolCallId)) return message;
  const renamed = (kept?.toolCalls ?? []).findIndex(({ id }) => id === toolCallId);
  const place = renamed >= 0 && kept?.toolCalls?.length === ours.length ? renamed : nth;
  const id = ours[place]?.id ?? toolCallId;
  return id === undefined ? message : { ...message, toolCallId: id };
}
