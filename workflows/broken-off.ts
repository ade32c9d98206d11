import { ActivityFailure, ApplicationFailure, CancelledFailure } from '@temporalio/workflow';
import type { Paid } from '../core/measures/usage.ts';
import { BILLING_PAUSED } from '../core/money/billing-paused.ts';

/** What the service said when it asked for payment; null for any other failure. */
export function billingPauseIn(error: unknown): string | null {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure && cause.type === BILLING_PAUSED ? cause.message : null;
}

/** What a trial had taken when it was broken off, as its failure tells; null where it does not, and only its book knows. */
export function paidInFailure(error: unknown): Paid | null {
  const cause = causeOf(error);
  const details = cause instanceof ApplicationFailure || cause instanceof CancelledFailure ? cause.details : null;
  const [paid] = details ?? [];
  return isPaid(paid) ? paid : null;
}

const causeOf = (error: unknown): unknown => (error instanceof ActivityFailure ? error.cause : error);

function isPaid(value: unknown): value is Paid {
  return typeof value === 'object' && value !== null && 'meters' in value && 'sent' in value && 'lost' in value && 'usd' in value;
}
