import type { ToolShapes } from './tool-shapes.ts';

/** A stretch of sampled text: one marker of the family, or the text between two. */
export type Piece = { readonly text: string; readonly marker: boolean };

/** A tool call as the model wrote it. `arguments` is JSON text; `id` is there only where the model itself names its calls. */
export type CallText = { readonly name: string; readonly arguments: string; readonly id?: string };

/** What was sampled in one turn, without the id that ended it. */
export type TurnText = {
  readonly pieces: readonly Piece[];
  /** The token that ended the turn, as text; null when the turn was cut (by length, or by a stop string of the agent). */
  readonly closedBy: string | null;
  /** The prompt ends inside reasoning, so the turn begins there. */
  readonly reasoningOpen: boolean;
  /** The tools of the request. Without any, nothing is read as a call. */
  readonly tools: ToolShapes;
};

/** `calls` is null when the text holds the beginning of a call that cannot be read: `content` is then all of the raw text. */
export type TurnReading = { readonly content: string; readonly reasoning: string; readonly calls: readonly CallText[] | null };

/** Reads calls out of a turn whose reasoning has been taken off; null when there is a call that cannot be read. */
export type CallParser = (pieces: readonly Piece[], tools: ToolShapes) => { content: string; calls: readonly CallText[] } | null;

/** How the turns of a kind of template end and what they hold. */
export type Family = {
  readonly name: string;
  /** Tokens at which sampling stops. Those that a tokenizer lacks are left out. */
  readonly stops: readonly string[];
  /** Tokens with which only the template closes a turn of the history: sampling goes on after them. */
  readonly closes: readonly string[];
  /** True where a turn is ended by the header of the next one (its role), so that the header is already sampled. */
  readonly endsWithNextHeader: boolean;
  /** Texts that are looked for in turns: as ids where the tokenizer has them as tokens, else as text. */
  readonly markers: readonly string[];
  /** Reasoning stands between `open` and `close`; `glue` is put after reasoning that was cut. Null: none, or no glue is needed. */
  readonly reasoning: { readonly open: string; readonly close: string; readonly glue: string } | null;
  readonly read: (turn: TurnText) => TurnReading;
  /** Form of the ids of tool calls: our own; nine letters and digits; or what the model wrote. */
  readonly callIds: 'own' | 'nine' | 'sampled';
  /** Why requests with tools are refused; null when they are not. */
  readonly noTools: string | null;
};
