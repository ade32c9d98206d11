import type { Moments } from './journal.ts';

/**
 * A rebuilt model must show the losses that the lost one showed. They may differ by what this many nats on every token's log-probability
 * would make: services compute in short floating-point formats and in no fixed order, which averages out over the tokens of a loss to
 * well below that; other weights are mostly above it.
 */
export const MOST_APART_NATS_PER_TOKEN = 0.02;

/** A loss as it was, and as it is again. */
export type Comparison = {
  /** Whose loss it is, in words. */
  readonly what: string;
  /** True when no update was made since the model was: nothing but the loaded weights is in it. */
  readonly ofLoadedWeights: boolean;
  /** Null where the service does not say. */
  readonly seen: number | null;
  readonly again: number | null;
  /** Sum of the sizes of what multiplies the tokens' log-probabilities in the loss. */
  readonly weight: number;
};

export type SelfTest = {
  /** How the moments turn out to be. */
  readonly moments: Moments;
  /** Why training must not go on with this model; null when it may. */
  readonly differs: string | null;
};

/**
 * Judges a rebuilt model by its losses so far. Loaded weights must show theirs. When they do and later losses do not, the moments were
 * not what they had been: training goes on with cold ones. With a fresh adapter, whose moments are known, any difference is one of the weights.
 */
export function selfTest(moments: Moments, comparisons: readonly Comparison[]): SelfTest {
  const apart = comparisons.find(isApart);
  if (!apart) return { moments, differs: null };
  if (!apart.ofLoadedWeights && moments !== 'fresh') return { moments: 'cold', differs: null };
  const { what, seen, again } = apart;
  return { moments, differs: `the loss of ${what} is ${again}, and was ${seen} before the model was lost` };
}

/** What was not told cannot be compared. */
function isApart({ seen, again, weight }: Comparison): boolean {
  if (seen === null || again === null) return false;
  return !(Math.abs(again - seen) <= MOST_APART_NATS_PER_TOKEN * weight);
}
