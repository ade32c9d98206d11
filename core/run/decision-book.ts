import type { DecisionRecord } from './decision.ts';

/** What the lines of the book may come to, as JSON: it goes with the run's status wherever that goes. The history has all of them. */
export const MOST_DECISION_BYTES = 160 * 1024;
export const MOST_REFUSED_BYTES = 96 * 1024;

/** Refused messages that are kept, and the characters of their texts: anybody can send them, as many and as long as they like. */
export const MAX_REFUSED = 50;
const MAX_REFUSED_CHARS = 500;

/**
 * The book of a run's decisions, small enough to travel: the newest of each kind. Answers to questions stay before other decisions: who
 * answers late is told who came before.
 */
export function keptDecisions(book: readonly DecisionRecord[]): DecisionRecord[] {
  const newest = book.toReversed();
  const applied = newest.filter((line) => line.applied);
  const ranked = [...applied.filter(({ waitId }) => waitId !== null), ...applied.filter(({ waitId }) => waitId === null)];
  const refused = newest.filter((line) => !line.applied).slice(0, MAX_REFUSED);
  const kept = new Set([...within(MOST_DECISION_BYTES, ranked), ...within(MOST_REFUSED_BYTES, refused)]);
  return book.filter((line) => kept.has(line));
}

/** A refused message as it is kept. */
export const refusedLine = (line: DecisionRecord): DecisionRecord => ({
  ...line,
  reason: line.reason && head(line.reason, MAX_REFUSED_CHARS),
  refusal: line.refusal && head(line.refusal, MAX_REFUSED_CHARS),
});

/** The first lines that fit. */
function within(mostBytes: number, lines: readonly DecisionRecord[]): DecisionRecord[] {
  let bytes = 0;
  return lines.filter((line) => {
    bytes += new TextEncoder().encode(JSON.stringify(line)).length + 1;
    return bytes <= mostBytes;
  });
}

/** A text, or its beginning where it is longer. */
export const head = (text: string, maxChars: number): string => (text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`);
