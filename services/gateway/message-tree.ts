import { bucketOf, keptOf, sameMessage } from './canonical.ts';
import type { ChatMessage, ParsedTurn } from './renderer.ts';
import type { TokenLine } from './token-line.ts';

/** A turn that was sampled in this trial. */
export type Turn = {
  readonly callIndex: number;
  /** What it was sampled after; `whole` goes on with what was sampled. */
  readonly prompt: TokenLine;
  readonly whole: TokenLine;
  readonly sampled: Int32Array;
  /** The sampled ids end in a stop token of the template. */
  readonly closed: boolean;
  readonly said: ParsedTurn;
  /** What the renderer left when it made the prompt; undefined when the prompt was rendered whole. */
  readonly memo: unknown;
  /** The conversation up to and including this turn. */
  readonly after: MessageNode;
  /** A later call's prompt starts with this turn's ids. */
  continued: boolean;
};

/** A message in its context: the path from the root is the conversation up to here. */
export type MessageNode = {
  readonly parent: MessageNode | null;
  /** Messages that no model of ours said. */
  readonly next: Map<string, { readonly message: ChatMessage; readonly node: MessageNode }[]>;
  /** Turns sampled after this message. */
  readonly turns: Turn[];
  /** Number of messages of the longest conversation that was sampled through here, its last turn included. */
  longest: number;
};

/** Where a turn of ours stands in a conversation. */
export type PlacedTurn = { readonly turn: Turn; readonly index: number; readonly before: PlacedTurn | null };

/** The known part of a conversation: `depth` messages lead to `node`, and `last` is the newest turn of ours among them. */
export type Known = {
  readonly node: MessageNode;
  readonly depth: number;
  readonly last: PlacedTurn | null;
  /** What speaks for this reading where a conversation can be read in several ways. */
  readonly callIds: number;
  readonly kept: number;
};

export function emptyNode(parent: MessageNode | null = null): MessageNode {
  return { parent, next: new Map(), turns: [], longest: 0 };
}

/**
 * Follows a conversation as far as it is known. An assistant message may be several of our turns (one that was sampled again, say), so
 * all readings are followed; the one with the newest turn of ours wins, then the one whose calls the tool messages answer, then the one
 * that kept more, then the turn that was sampled last.
 */
export function follow(root: MessageNode, messages: readonly ChatMessage[]): Known {
  const start: Known = { node: root, depth: 0, last: null, callIds: 0, kept: 0 };
  let best = start;
  let readings: Known[] = [start];
  for (const index of messages.keys()) {
    readings = readings.flatMap((reading) => steps(reading, messages, index));
    for (const reading of readings) if (isBetter(reading, best)) best = reading;
    if (readings.length === 0) break;
  }
  return best;
}

/** The node of a message after another one, made when it is new. */
export function step(node: MessageNode, message: ChatMessage): MessageNode {
  const known = childOf(node, message);
  if (known) return known;
  const added = emptyNode(node);
  const bucket = bucketOf(message);
  node.next.set(bucket, [...(node.next.get(bucket) ?? []), { message, node: added }]);
  return added;
}

/** Tells every message of a path how long the conversation through it has become. */
export function lengthen(node: MessageNode): void {
  let messages = 0;
  for (let at = node.parent; at !== null; at = at.parent) messages++;
  for (let at: MessageNode | null = node; at !== null; at = at.parent) at.longest = Math.max(at.longest, messages);
}

function steps(reading: Known, messages: readonly ChatMessage[], index: number): Known[] {
  const { node, last } = reading;
  const depth = index + 1;
  const message = messages[index];
  if (message === undefined) return [];
  const next: Known[] = [];
  if (message.role === 'assistant') {
    for (const turn of node.turns) {
      const kept = keptOf(turn.said, message);
      if (kept === 0) continue;
      const callIds = reading.callIds + (node.turns.length > 1 ? namedCalls(turn, messages, index) : 0);
      next.push({ node: turn.after, depth, last: { turn, index, before: last }, callIds, kept: reading.kept + kept });
    }
  }
  const child = childOf(node, message);
  if (child) next.push({ ...reading, node: child, depth });
  return next;
}

function childOf(node: MessageNode, message: ChatMessage): MessageNode | undefined {
  return node.next.get(bucketOf(message))?.find((child) => sameMessage(child.message, message))?.node;
}

function isBetter(one: Known, other: Known): boolean {
  const differences = [
    (one.last?.index ?? -1) - (other.last?.index ?? -1),
    one.callIds - other.callIds,
    one.kept - other.kept,
    (one.last?.turn.callIndex ?? -1) - (other.last?.turn.callIndex ?? -1),
    one.depth - other.depth,
  ];
  return (differences.find((difference) => difference !== 0) ?? 0) > 0;
}

/** Ids of this turn's calls in the message that may be it, and in the tool messages that answer it. */
function namedCalls({ said }: Turn, messages: readonly ChatMessage[], index: number): number {
  const ids = new Set(said.toolCalls?.map(({ id }) => id));
  if (ids.size === 0) return 0;
  let named = (messages[index]?.toolCalls ?? []).filter(({ id }) => ids.has(id)).length;
  for (let at = index + 1; messages[at]?.role === 'tool'; at++) if (ids.has(messages[at]?.toolCallId ?? '')) named++;
  return named;
}
