import type { CallAnswer, CallIntent, Entry } from './entry.ts';

/** A call of the book, and what became of it: null when no answer was recorded. */
export type PaidCall = CallIntent & {
  /** Where its intent stands. */
  readonly place: number;
  readonly outcome: CallAnswer | StandingCall | 'refused' | null;
};

/** A call whose answer the service keeps back until it is paid. */
export type StandingCall = { readonly requestId: string };

/** The calls of a book, all attempts together, in the order in which they were made. */
export function callsIn(entries: readonly Entry[]): PaidCall[] {
  const calls = new Map<number, PaidCall>();
  entries.forEach((entry, place) => {
    if (entry.type === 'intent') calls.set(place, { ...entry, place, outcome: null });
    if (entry.type !== 'answer' && entry.type !== 'refused' && entry.type !== 'standing') return;
    const call = calls.get(entry.of);
    if (call) calls.set(entry.of, { ...call, outcome: entry.type === 'refused' ? 'refused' : entry });
  });
  return [...calls.values()];
}

/** A call whose answer was recorded. */
export type AnsweredCall = PaidCall & { readonly outcome: CallAnswer };

export const isAnswered = (call: PaidCall): call is AnsweredCall => typeof call.outcome === 'object' && 'usable' in (call.outcome ?? {});

/** The name by which the call may be waited for again; null when it does not stand. */
export const standingAs = ({ outcome }: PaidCall): string | null =>
  typeof outcome === 'object' && outcome !== null && 'requestId' in outcome ? outcome.requestId : null;
