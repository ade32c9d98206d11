import { ApplicationFailure } from '@temporalio/common';
import { BILLING_PAUSED } from '../core/money/billing-paused.ts';
import { BillingPaused } from '../services/tinker/index.ts';

/** The error as the run should hear of it; `details` go with it. */
export function billingPause(told: string, ...details: unknown[]): ApplicationFailure {
  return ApplicationFailure.nonRetryable(told, BILLING_PAUSED, ...details);
}

/** A refusal for want of payment by its name; any other error as it is. */
export function namingBilling(error: unknown): unknown {
  return error instanceof BillingPaused ? billingPause(error.message) : error;
}

export function isBillingPause(error: unknown): boolean {
  return error instanceof ApplicationFailure && error.type === BILLING_PAUSED;
}
