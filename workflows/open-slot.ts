import type { TrialId } from '../core/ids.ts';
import { addPaid, NOTHING_PAID, type Paid } from '../core/measures/usage.ts';
import type { BookName } from '../core/recordings/book-name.ts';
import type { TrialSummary } from '../core/run/trial.ts';

/** A slot that is not filled: how often it was tried and what that took, or its trial, which only lacks its score. */
export type OpenSlot =
  | { readonly slot: string; readonly stage: 'sample'; readonly retry: number; readonly paid: PaidTries }
  | { readonly slot: string; readonly stage: 'score'; readonly trial: TrialSummary };

/** A slot that must be tried again, and the trial that failed. */
export type Again = { readonly again: OpenSlot; readonly failed: TrialSummary };

/** What the attempts at a slot took, with how much of it came from the books of attempts that died. */
export type PaidTries = Paid & Pick<TrialSummary, 'replayedTokens' | 'reboughtTokens'>;

export const unstarted = (slot: string): OpenSlot => ({
  slot,
  stage: 'sample',
  retry: 0,
  paid: { ...NOTHING_PAID, replayedTokens: 0, reboughtTokens: 0 },
});

/** The trial that fills a slot next: each retry has an id of its own. */
export const trialIdOf = ({ slot, retry }: Extract<OpenSlot, { stage: 'sample' }>): TrialId =>
  (retry === 0 ? slot : `${slot}-r${retry}`) as TrialId;

/** The book of the calls with which a slot goes on. */
export const bookOf = (open: OpenSlot): BookName =>
  open.stage === 'sample' ? { of: trialIdOf(open), kind: 'sample' } : { of: open.trial.trialId, kind: 'score' };

/** What a slot took so far. */
export function paidIn(open: OpenSlot): Paid {
  return addPaid(open.stage === 'sample' ? open.paid : open.trial);
}
