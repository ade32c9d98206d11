import { addMeters, type MeterTokens } from './meters.ts';

/** Tokens as they went to a service and came back, call by call and in full: what of it is billed as cached is the meters' business. */
export type SentTokens = {
  readonly promptTokens: number;
  readonly sampledTokens: number;
  /** Tokens that the teacher was asked to score. */
  readonly scoredTokens: number;
  /** Tokens of the sequences that were sent to be trained on, those of a rebuild included. */
  readonly trainedTokens: number;
};

export const NOTHING_SENT: SentTokens = { promptTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 0 };

/**
 * A call that was sent and whose answer was never recorded, because its worker died, it was given up, or the service lost it: it may have
 * been charged for. It is booked at what it was reserved for, so `sampledTokens` is the most that it could sample.
 */
export type LostCall = {
  readonly kind: 'sample' | 'score' | 'train';
  /** The trial, or the step for a training call. */
  readonly of: string;
  /** From 0, among the calls of its kind. */
  readonly callIndex: number;
  /** Tokens of its input. */
  readonly promptTokens: number;
  readonly sampledTokens: number;
};

/** What a piece of work took of the services. */
export type Usage = {
  readonly meters: MeterTokens;
  readonly sent: SentTokens;
  /** The newest lost calls. */
  readonly lost: readonly LostCall[];
  /** Those before them, which are counted only; absent: none. */
  readonly lostBefore?: number;
};

/** Lost calls that are listed: a service that loses some all the time must not make a run's messages too large to send. */
export const MOST_LOST_LISTED = 200;

/** The same with its cost in USD, as far as there are prices. */
export type Paid = Usage & { readonly usd: number };

export const NO_USAGE: Usage = { meters: {}, sent: NOTHING_SENT, lost: [] };

export function addUsage(...parts: readonly Usage[]): Usage {
  const lost = parts.flatMap((part) => part.lost);
  const lostBefore = parts.reduce((count, part) => count + lostCalls(part), -Math.min(lost.length, MOST_LOST_LISTED));
  return {
    meters: addMeters(...parts.map(({ meters }) => meters)),
    sent: addSent(...parts.map(({ sent }) => sent)),
    lost: lost.slice(-MOST_LOST_LISTED),
    ...(lostBefore > 0 ? { lostBefore } : {}),
  };
}

/** How many calls were lost, listed or not. */
export const lostCalls = ({ lost, lostBefore = 0 }: Pick<Usage, 'lost' | 'lostBefore'>): number => lost.length + lostBefore;

/** The same with its lost calls counted, and not listed any more. */
export function withoutLostList<Taken extends Usage>(taken: Taken): Taken {
  return taken.lost.length === 0 ? taken : { ...taken, lost: [], lostBefore: lostCalls(taken) };
}

export function addPaid(...parts: readonly Paid[]): Paid {
  return { ...addUsage(...parts), usd: parts.reduce((sum, { usd }) => sum + usd, 0) };
}

export const NOTHING_PAID: Paid = { ...NO_USAGE, usd: 0 };

function addSent(...parts: readonly SentTokens[]): SentTokens {
  const sum = (key: keyof SentTokens) => parts.reduce((total, part) => total + part[key], 0);
  return {
    promptTokens: sum('promptTokens'),
    sampledTokens: sum('sampledTokens'),
    scoredTokens: sum('scoredTokens'),
    trainedTokens: sum('trainedTokens'),
  };
}
