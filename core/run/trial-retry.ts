import type { TrialRetry, TrialSummary } from './trial.ts';

const WORTH_RETRIES: Readonly<Record<TrialRetry, number>> = { never: 0, once: 1, again: Number.POSITIVE_INFINITY };

/** May a trial's slot be tried again, after `retried` retries of the `retries` that the run allows? A trial that counts never is. */
export function mayRetry({ executed, retry }: Pick<TrialSummary, 'executed' | 'retry'>, retried: number, retries: number): boolean {
  return !executed && retried < Math.min(retries, WORTH_RETRIES[retry]);
}
