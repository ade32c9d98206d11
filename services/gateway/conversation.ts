import { messageKey, toolsKey } from './canonical.ts';
import type { ChatMessage, ChatRenderer, ParsedTurn, ToolDefinition } from './renderer.ts';
import { TokenLine } from './token-line.ts';

/**
 * Why a call's prompt does not simply continue an earlier call.
 * - `first`: nothing was sampled before.
 * - `branch`: the same messages were sampled before (a retry), or another call already continued the same turn.
 * - `edited_history`: it holds assistant messages that this trial did not produce, or not after these messages.
 * - `no_match`: a conversation of its own (a sub-agent, a title, a summary).
 * - `tools_changed`: the tools, and with them the start of the prompt, are others.
 * - `template_refuses`: a turn matched, but the template cannot be extended there.
 */
export type FragmentCause = 'first' | 'branch' | 'edited_history' | 'no_match' | 'tools_changed' | 'template_refuses';

/** How a call hangs in the tree. `parentCall` is the call whose ids its prompt starts with; `cause` is null when it just continues that one. */
export type CallLink = { readonly parentCall: number | null; readonly cause: FragmentCause | null; readonly detail: string | null };

/** A prompt ready to be sampled, and the place in the tree where its turn will hang. */
export type PlacedPrompt = {
  /** Shares its memory with the turns that it continues. */
  readonly line: TokenLine;
  readonly prompt: Int32Array;
  readonly parent: Turn | null;
  readonly place: MessageNode;
  /** What the cause is if the call opens a fragment; whether it does is known when it is recorded. */
  readonly openingCause: FragmentCause;
  readonly refusal: string | null;
};

type Turn = {
  readonly callIndex: number;
  /** Prompt and sampled ids. */
  readonly whole: TokenLine;
  /** The sampled ids end in a stop token of the template. */
  readonly closed: boolean;
  /** A later call's prompt starts with this turn's ids. */
  continued: boolean;
};

/** A message in its context: the path from the root is the conversation up to here. */
type MessageNode = {
  readonly next: Map<string, MessageNode>;
  /** Set when this message was sampled here: the newest such turn. */
  turn: Turn | null;
  /** True when a turn was sampled after this message. */
  answered: boolean;
};

/**
 * All conversations of one trial as a tree of messages, so that retries, sub-agents and parallel calls live side by side.
 * Earlier sampled ids are spliced into later prompts as they were; only what is new since the newest matching turn is encoded.
 */
export class ConversationTree {
  readonly #renderer: ChatRenderer;
  readonly #stopTokens: ReadonlySet<number>;
  readonly #roots = new Map<string, MessageNode>();
  #recorded = 0;

  constructor(renderer: ChatRenderer) {
    this.#renderer = renderer;
    this.#stopTokens = new Set(renderer.stopTokens);
  }

  /** Finds the newest turn of ours in `messages` and builds the prompt: its prompt + its sampled ids + the ids of what follows. */
  async prompt(messages: readonly ChatMessage[], tools: readonly ToolDefinition[]): Promise<PlacedPrompt> {
    const { place, turn, producedIndex, newTools } = this.#find(messages, tools);
    const foreignTurns = messages.some(({ role }, index) => role === 'assistant' && index > producedIndex);
    const otherwise = newTools ? 'tools_changed' : foreignTurns ? 'edited_history' : turn ? 'branch' : 'no_match';
    if (turn) {
      const extension = await this.#renderer.extend({ messages, producedIndex, closed: turn.closed, tools });
      if ('delta' in extension)
        return { ...prompted(turn.whole.with(extension.delta)), parent: turn, place, openingCause: otherwise, refusal: null };
      const prompt = await this.#renderer.render(messages, { tools, addGenerationPrompt: true });
      return { ...prompted(TokenLine.of(prompt)), parent: null, place, openingCause: 'template_refuses', refusal: extension.refused };
    }
    const prompt = await this.#renderer.render(messages, { tools, addGenerationPrompt: true });
    return { ...prompted(TokenLine.of(prompt)), parent: null, place, openingCause: otherwise, refusal: null };
  }

  /** Hangs a sampled turn in the tree. `said` must be what the agent is shown, for it comes back as history. */
  record(placed: PlacedPrompt, callIndex: number, sampled: Int32Array, said: ParsedTurn): CallLink {
    const { line, parent, place, refusal } = placed;
    const cause = this.#causeOf(placed);
    const last = sampled.at(-1);
    const closed = last !== undefined && this.#stopTokens.has(last); // by ids: text that looks like a close is none
    const whole = line.with(sampled);
    step(place, messageKey({ role: 'assistant', ...said })).turn = { callIndex, whole, closed, continued: false };
    place.answered = true;
    if (parent) parent.continued = true;
    this.#recorded++;
    return { parentCall: parent?.callIndex ?? null, cause, detail: refusal };
  }

  #causeOf({ parent, place, openingCause }: PlacedPrompt): FragmentCause | null {
    if (this.#recorded === 0) return 'first';
    if (parent && !parent.continued) return null;
    if (openingCause === 'template_refuses') return openingCause;
    return place.answered ? 'branch' : openingCause;
  }

  #find(messages: readonly ChatMessage[], tools: readonly ToolDefinition[]) {
    const key = toolsKey(tools);
    const newTools = this.#roots.size > 0 && !this.#roots.has(key);
    let place = this.#roots.get(key) ?? emptyNode();
    this.#roots.set(key, place);
    let turn: Turn | null = null;
    let producedIndex = -1;
    for (const [index, message] of messages.entries()) {
      place = step(place, messageKey(message));
      if (!place.turn) continue;
      turn = place.turn;
      producedIndex = index;
    }
    return { place, turn, producedIndex, newTools };
  }
}

function step(node: MessageNode, key: string): MessageNode {
  const known = node.next.get(key);
  if (known) return known;
  const added = emptyNode();
  node.next.set(key, added);
  return added;
}

function emptyNode(): MessageNode {
  return { next: new Map(), turn: null, answered: false };
}

const prompted = (line: TokenLine) => ({ line, prompt: line.ids });
