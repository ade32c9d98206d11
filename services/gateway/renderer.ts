/** A chat message after the wire has been parsed: text only, `developer` read as `system`. */
export type ChatMessage = {
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly ToolCall[];
  readonly toolCallId?: string;
};

/** `arguments` is the JSON text as the model or the agent wrote it. */
export type ToolCall = { readonly id: string; readonly name: string; readonly arguments: string };

/** An OpenAI `tools[]` entry as JSON text: key order and the form of numbers reach the template as the agent wrote them. */
export type ToolDefinition = { readonly json: string };

/** What the model said in one turn, read from its ids. Fields that are absent were not there. */
export type ParsedTurn = {
  readonly content: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly ToolCall[];
  /** The turn holds what begins like tool calls but cannot be read as such; `content` is then all of its text. */
  readonly callsUnreadable?: true;
};

/** What a turn's ids were sampled after: a prompt may open the reasoning that they close, and tools say what types arguments have. */
export type ParseContext = {
  readonly prompt: Int32Array;
  readonly tools: readonly ToolDefinition[];
  /** Makes ids of tool calls differ between two calls of the model that sampled the same after the same. */
  readonly callIndex?: number;
};

/** A turn that was sampled earlier and stands in `messages` at `producedIndex`; what follows it is to be appended to its ids. */
export type ExtendRequest = {
  readonly messages: readonly ChatMessage[];
  readonly producedIndex: number;
  /** Its ids: what it was sampled after, and what was sampled. */
  readonly prompt: Int32Array;
  readonly sampled: Int32Array;
  /** What the extension that made its prompt left for later; absent when the prompt was rendered as a whole. */
  readonly memo?: unknown;
  /** True when the sampled ids end in a stop token. If not (cut by length), the delta must begin with what closes the turn. */
  readonly closed: boolean;
  readonly tools: readonly ToolDefinition[];
};

/**
 * The ids to put after prompt + sampled ids, generation prompt included; or why this template cannot be extended here.
 * `rewrites` is set where the template could be extended but writes earlier text anew, so that it would not be what the model is used to.
 */
export type Extension = { readonly delta: Int32Array; readonly memo?: unknown } | { readonly refused: string; readonly rewrites?: true };

/** The model's ids as text. `size` counts ids: valid ones are 0 … size-1. */
export type Vocabulary = {
  readonly size: number;
  idToString(id: number): string;
  /** The bytes of the id's text as UTF-8: of a part of a character, only that part's. */
  bytesOf(id: number): Uint8Array;
};

/** A digest that must be equal for two models whose token ids are compared (student and teacher). */
export type RendererFingerprint = { readonly template: string };

/** Native tokenizers encode off the event loop, small ones at once; callers await either. */
export type Awaitable<T> = T | Promise<T>;

/**
 * A model's chat template and tokenizer in one: messages to ids and ids to messages.
 * Only text that no model sampled may ever go through `tokenize`, `render` or `extend`; sampled ids are spliced by the caller.
 */
export interface ChatRenderer {
  /** Name used in configs, e.g. `stillroom_tiny`. */
  readonly name: string;
  readonly tokenizer: string;
  /** Ids that end an assistant turn; the sampler returns the one it met as the last sampled id. */
  readonly stopTokens: readonly number[];
  /** Why requests with tools are refused, before anything is rendered; null when they are not. */
  readonly noTools: string | null;
  readonly vocabulary: Vocabulary;
  tokenize(text: string): Awaitable<Int32Array>;
  /** The whole conversation as ids. Used for the first call of a fragment only. */
  render(
    messages: readonly ChatMessage[],
    options: { readonly tools: readonly ToolDefinition[]; readonly addGenerationPrompt: boolean },
  ): Awaitable<Int32Array>;
  extend(request: ExtendRequest): Awaitable<Extension>;
  /** How many control tokens the text of these messages turns into: look-alikes that a user or a tool wrote. Absent: never any. */
  lookAlikes?(messages: readonly ChatMessage[]): number;
  /** Reads sampled ids. Never fails: what cannot be read as a tool call comes back as content. */
  parse(sampled: Int32Array, context: ParseContext): Awaitable<ParsedTurn>;
  fingerprint(): Awaitable<RendererFingerprint>;
}
