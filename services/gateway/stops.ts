import type { ChatRenderer, ParseContext, ParsedTurn, Vocabulary } from './renderer.ts';

/** A request's stop strings. Those that are one token are also given to the sampler as `ids`, so that it ends there by itself. */
export type Stops = { readonly texts: readonly string[]; readonly ids: readonly number[] };

export async function stopsOf(texts: readonly string[], renderer: ChatRenderer): Promise<Stops> {
  const ids: number[] = [];
  for (const text of texts) {
    const [id, ...rest] = await renderer.tokenize(text);
    if (id !== undefined && rest.length === 0 && Buffer.from(text).equals(renderer.vocabulary.bytesOf(id))) ids.push(id);
  }
  return { texts, ids };
}

/**
 * Where sampled ids end because of a stop string: `kept` of them are the fewest whose text holds the string, `shown` of those lie wholly
 * before it, and it begins within a token if `isInside`.
 */
export type Cut = { readonly text: string; readonly kept: number; readonly shown: number; readonly isInside: boolean };

/** Looks in the exact bytes, so that a string which is spread over tokens in any way is found. Null when there is none. */
export function cutAtStop(sampled: Int32Array, texts: readonly string[], vocabulary: Vocabulary): Cut | null {
  if (texts.length === 0) return null;
  const pieces = Array.from(sampled, (id) => vocabulary.bytesOf(id));
  const bytes = Buffer.concat(pieces);
  const found = texts
    .map((text) => ({ text, needle: Buffer.from(text) })) // as bytes: given half a surrogate pair as text, Node's search ends the process
    .map(({ text, needle }) => ({ text, start: bytes.indexOf(needle), length: needle.length }))
    .filter(({ start }) => start >= 0)
    .map(({ text, start, length }) => ({ text, start, end: start + length }))
    .toSorted((a, b) => a.end - b.end || a.start - b.start)[0];
  if (!found) return null;
  let end = 0;
  const ends = pieces.map((piece) => (end += piece.length));
  const kept = ends.findIndex((tokenEnd) => tokenEnd >= found.end) + 1;
  const shown = ends.findLastIndex((tokenEnd) => tokenEnd <= found.start) + 1;
  return { text: found.text, kept, shown, isInside: (ends[shown - 1] ?? 0) < found.start };
}

/** What an agent is shown of a turn that a stop string ended: all before the string. */
export async function saidBefore(cut: Cut, kept: Int32Array, renderer: ChatRenderer, context: ParseContext): Promise<ParsedTurn> {
  if (cut.isInside) {
    // The token that the string begins in has text before it, which only a reading of the whole shows.
    const { content, reasoning, ...rest } = await renderer.parse(kept, context);
    const told = reasoning === undefined ? {} : { reasoning };
    if (content.includes(cut.text)) return { content: content.slice(0, content.lastIndexOf(cut.text)), ...told, ...rest };
    if (reasoning?.includes(cut.text)) return { content, reasoning: reasoning.slice(0, reasoning.lastIndexOf(cut.text)), ...rest };
  }
  return renderer.parse(kept.subarray(0, cut.shown), context);
}
