import { createHash } from 'node:crypto';
import { toolsKey } from './canonical.ts';
import { type FragmentCause, openingCause } from './fragment-cause.ts';
import { emptyNode, follow, type Known, lengthen, type MessageNode, step, type Turn } from './message-tree.ts';
import { asSampled } from './own-words.ts';
import type { ChatMessage, ChatRenderer, Extension, ParsedTurn, ToolDefinition } from './renderer.ts';
import { TokenLine } from './token-line.ts';

export type { FragmentCause } from './fragment-cause.ts';

/**
 * How a call hangs in the tree. `parentCall` is the call whose ids its prompt starts with; `cause` is null when it just continues that
 * one. `lookAlikes` counts control tokens in the prompt's new text that a user or a tool wrote as text.
 */
export type CallLink = {
  readonly parentCall: number | null;
  readonly cause: FragmentCause | null;
  readonly detail: string | null;
  readonly lookAlikes: number;
};

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
  readonly lookAlikes: number;
  readonly memo: unknown;
};

/**
 * All conversations of one trial as a tree of messages, so that retries, sub-agents and parallel calls live side by side.
 * Earlier sampled ids are spliced into later prompts as they were; only what is new since the newest matching turn is encoded.
 */
export class ConversationTree {
  readonly #renderer: ChatRenderer;
  readonly #stopTokens: ReadonlySet<number>;
  /** By a digest of the request's tools, which stand at the start of every prompt. They are not kept: an agent may send megabytes of ever new ones. */
  readonly #roots = new Map<string, MessageNode>();
  readonly #turns: Turn[] = [];

  readonly #takes: (added: readonly ChatMessage[]) => void;

  /** `takes` is told of messages that are new before they are kept; if it throws, so does `prompt`. */
  constructor(renderer: ChatRenderer, takes: (added: readonly ChatMessage[]) => void = () => {}) {
    this.#takes = takes;
    this.#renderer = renderer;
    this.#stopTokens = new Set(renderer.stopTokens);
  }

  /**
   * Finds the newest turn of ours in `messages` and builds the prompt: its prompt + its sampled ids + the ids of what follows.
   * @throws what the renderer throws when the template refuses the whole conversation.
   */
  async prompt(messages: readonly ChatMessage[], tools: readonly ToolDefinition[]): Promise<PlacedPrompt> {
    const { root, others } = this.#rootsFor(tools);
    const known = follow(root, messages);
    const cause = openingCause(messages, known, { otherRoots: others, turns: this.#turns });
    const added = messages.slice(known.depth);
    this.#takes(added);
    const place = added.reduce(step, known.node);
    const own = asSampled(messages, known.last);
    const placed = { place, openingCause: cause };
    const extension = await this.#extension(own, known, tools);
    if (extension && 'delta' in extension) {
      const { turn, index } = extension.from;
      const lookAlikes = this.#lookAlikes(own.slice(index + 1));
      return { ...placed, ...prompted(turn.whole.with(extension.delta)), parent: turn, refusal: null, lookAlikes, memo: extension.memo };
    }
    const rendered = await this.#renderer.render(own, { tools, addGenerationPrompt: true });
    const refused = extension ? { openingCause: refusalCause(extension), refusal: extension.refused } : { refusal: null };
    const lookAlikes = this.#lookAlikes(own);
    return { ...placed, ...prompted(TokenLine.of(rendered)), parent: null, ...refused, lookAlikes, memo: undefined };
  }

  /** Hangs a sampled turn in the tree. `said` must be what the agent is shown, for it comes back as history. */
  record(placed: PlacedPrompt, callIndex: number, sampled: Int32Array, said: ParsedTurn): CallLink {
    const { line, parent, place, refusal, lookAlikes, memo } = placed;
    const cause = this.#causeOf(placed);
    const last = sampled.at(-1);
    const closed = last !== undefined && this.#stopTokens.has(last); // by ids: text that looks like a close is none
    const after = emptyNode(place);
    const turn = { callIndex, prompt: line, whole: line.with(sampled), sampled, closed, said, memo, after, continued: false };
    place.turns.push(turn);
    this.#turns.push(turn);
    lengthen(after);
    if (parent) parent.continued = true;
    return { parentCall: parent?.callIndex ?? null, cause, detail: refusal, lookAlikes };
  }

  async #extension(messages: readonly ChatMessage[], { last }: Known, tools: readonly ToolDefinition[]) {
    if (last === null) return null;
    const { turn, index } = last;
    const { prompt, sampled, closed, memo } = turn;
    const extension: Extension = await this.#renderer.extend({
      messages,
      producedIndex: index,
      prompt: prompt.ids,
      sampled,
      closed,
      tools,
      memo,
    });
    return { ...extension, from: last };
  }

  #causeOf({ parent, place, openingCause: cause }: PlacedPrompt): FragmentCause | null {
    if (this.#turns.length === 0) return 'first';
    if (parent && !parent.continued) return null;
    return place.turns.length > 0 ? 'retry' : cause;
  }

  #rootsFor(tools: readonly ToolDefinition[]): { root: MessageNode; others: MessageNode[] } {
    const key = createHash('sha256').update(toolsKey(tools)).digest('base64');
    const others = [...this.#roots].filter(([other]) => other !== key).map(([, node]) => node);
    const root = this.#roots.get(key) ?? emptyNode();
    this.#roots.set(key, root);
    return { root, others };
  }

  #lookAlikes(messages: readonly ChatMessage[]): number {
    return this.#renderer.lookAlikes?.(messages.filter(({ role }) => role !== 'assistant')) ?? 0;
  }
}

function refusalCause({ rewrites }: Extract<Extension, { refused: string }>): FragmentCause {
  return rewrites ? 'template_rewrites' : 'template_refuses';
}

const prompted = (line: TokenLine) => ({ line, prompt: line.ids });
