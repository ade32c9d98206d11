import { NOTHING_PAID, type Paid } from '../core/measures/usage.ts';
import type { TrialSummary } from '../core/run/trial.ts';

/** A slot that is not filled: how often it was tried and what that took, or its trial, which only lacks its score. */
export type OpenSlot =
  | { readonly slot: string; readonly stage: 'sample'; readonly retry: number; readonly paid: Paid }
  | { readonly slot: string; readonly stage: 'score'; readonly trial: TrialSummary };

export const unstarted = (slot: string): OpenSlot => ({ slot, stage: 'sample', retry: 0, paid: NOTHING_PAID });

/** What a slot took so far. */
export function paidIn(open: OpenSlot): Paid {
  if (open.stage === 'sample') return open.paid;
  const { meters, sent, lost, usd } = open.trial;
  return { meters, sent, lost, usd };
}
