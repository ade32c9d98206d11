import type { Tokenizer } from '../tokenizer/tokenizer.ts';
import type { Piece } from './family.ts';

/** Tokens of a prompt's end that are looked at for an open tag. */
const PROMPT_END_TOKENS = 16;

/** Splits sampled ids at a family's markers. */
export interface Pieces {
  of(ids: Int32Array): Piece[];
}

/**
 * A marker that is a token is found among the ids, so that the same text in ordinary pieces is no marker;
 * one that the tokenizer does not have as a token is found in the text.
 */
export function piecesOf(tokenizer: Pick<Tokenizer, 'addedTokens' | 'bytesOf'>, markers: readonly string[]): Pieces {
  const byId = new Map<number, string>();
  for (const { id, content } of tokenizer.addedTokens) if (markers.includes(content)) byId.set(id, content);
  const tokens = new Set(byId.values());
  const asText = markers.filter((marker) => !tokens.has(marker));
  return {
    of(ids) {
      const pieces: Piece[] = [];
      let start = 0;
      for (let index = 0; index <= ids.length; index++) {
        const id = ids[index];
        const marker = id === undefined ? undefined : byId.get(id);
        if (index < ids.length && marker === undefined) continue;
        if (index > start) pieces.push(...splitText(textOf(tokenizer, ids.subarray(start, index)), asText));
        if (marker !== undefined) pieces.push({ text: marker, marker: true });
        start = index + 1;
      }
      return pieces;
    },
  };
}

/** The text of ids; bytes that are no UTF-8 become U+FFFD. */
export function textOf(tokenizer: Pick<Tokenizer, 'bytesOf'>, ids: Int32Array): string {
  return Buffer.concat(Array.from(ids, (id) => tokenizer.bytesOf(id))).toString('utf8');
}

/** The prompt ends in the tag that opens reasoning, as generation prompts of reasoning models may. */
export function opensReasoning(tokenizer: Pick<Tokenizer, 'bytesOf'>, prompt: Int32Array, open: string): boolean {
  return textOf(tokenizer, prompt.subarray(-PROMPT_END_TOKENS)).trimEnd().endsWith(open);
}

/** Pieces as the text that they were. */
export function raw(pieces: readonly Piece[]): string {
  return pieces.map(({ text }) => text).join('');
}

/** The index of the first of these markers at or after `from`; -1 when there is none. */
export function markerAt(pieces: readonly Piece[], markers: readonly string[], from = 0): number {
  return pieces.findIndex(({ text, marker }, index) => index >= from && marker && markers.includes(text));
}

function splitText(text: string, markers: readonly string[]): Piece[] {
  if (markers.length === 0) return [{ text, marker: false }];
  const pattern = new RegExp(`(${markers.map(escaped).join('|')})`);
  return text
    .split(pattern)
    .map((part, index) => ({ text: part, marker: index % 2 === 1 }))
    .filter(({ text: part }) => part !== '');
}

/** A text as a regular expression that finds it. */
export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
