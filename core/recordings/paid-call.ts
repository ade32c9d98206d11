import type { CallAnswer, CallIntent, Entry } from './entry.ts';

/** A call of the book, and what became of it: null when no answer was recorded. */
export type PaidCall = CallIntent & {
  /** Where its intent stands. */
  readonly place: number;
  readonly outcome: CallAnswer | 'refused' | null;
};

/** The calls of a book, all attempts together, in the order in which they were made. */
export function callsIn(entries: readonly Entry[]): PaidCall[] {
  const calls = new Map<number, PaidCall>();
  entries.forEach((entry, place) => {
    if (entry.type === 'intent') calls.set(place, { ...entry, place, outcome: null });
    if (entry.type !== 'answer' && entry.type !== 'refused') return;
    const call = calls.get(entry.of);
    if (call) calls.set(entry.of, { ...call, outcome: entry.type === 'answer' ? entry : 'refused' });
  });
  return [...calls.values()];
}

/** A call whose answer was recorded. */
export type AnsweredCall = PaidCall & { readonly outcome: CallAnswer };

export const isAnswered = (call: PaidCall): call is AnsweredCall => call.outcome !== null && call.outcome !== 'refused';
