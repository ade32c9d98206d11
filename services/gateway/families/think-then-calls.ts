import type { CallParser, Family, Piece, TurnReading, TurnText } from './family.ts';
import { markerAt, raw } from './pieces.ts';

/** Reasoning between `<think>` tags, as nearly every open family writes it. */
export const THINK = { open: '<think>', close: '</think>', glue: '\n</think>\n\n' } as const;

/** Reads a turn that reasons first and then says something or calls tools. `openers` are the markers that begin calls. */
export function thinkThenCalls(
  { reasoning, openers }: { readonly reasoning: Family['reasoning']; readonly openers: readonly string[] },
  parse: CallParser,
): Family['read'] {
  return (turn) => {
    const split = withoutReasoning(turn, reasoning, openers);
    return { ...readCalls(split.rest, turn, parse), reasoning: split.reasoning };
  };
}

/** For templates without tools: all that is no reasoning is content. */
export const noCalls: CallParser = (pieces) => ({ content: raw(pieces), calls: [] });

function readCalls(rest: readonly Piece[], { tools, closedBy }: TurnText, parse: CallParser): Omit<TurnReading, 'reasoning'> {
  const plain = { content: raw(rest), calls: [] };
  // A turn that was cut may lack the end of a call, or further calls: nothing in it is executed.
  if (tools.size === 0 || closedBy === null) return plain;
  return parse(rest, tools) ?? { ...plain, calls: null };
}

/**
 * The reasoning is open from the prompt, opened by the turn's first token, or, where a model forgot to open it, ended by a close.
 * A call ends it too. Without an end all of the turn is reasoning.
 */
function withoutReasoning({ pieces, reasoningOpen }: TurnText, tags: Family['reasoning'], openers: readonly string[]) {
  if (tags === null) return { reasoning: '', rest: pieces };
  const opened = openedAt(pieces, tags.open);
  const close = markerAt(pieces, [tags.close]);
  if (!reasoningOpen && opened === -1 && close === -1) return { reasoning: '', rest: pieces };
  const call = markerAt(pieces, openers);
  const ends = [close, call].filter((index) => index > opened);
  const end = ends.length > 0 ? Math.min(...ends) : pieces.length;
  if (!reasoningOpen && opened === -1 && end !== close) return { reasoning: '', rest: pieces };
  const rest = pieces.slice(end === close ? end + 1 : end);
  return { reasoning: raw(pieces.slice(opened + 1, end)).trim(), rest: withoutLeadingNewlines(rest) };
}

function openedAt(pieces: readonly Piece[], open: string): number {
  const first = pieces.findIndex(({ text, marker }) => marker || text.trim() !== '');
  const piece = pieces[first];
  return piece?.marker && piece.text === open ? first : -1;
}

function withoutLeadingNewlines([first, ...others]: readonly Piece[]): Piece[] {
  if (first === undefined || first.marker) return first === undefined ? [] : [first, ...others];
  const text = first.text.replace(/^\n+/, '');
  return text === '' ? others : [{ text, marker: false }, ...others];
}
