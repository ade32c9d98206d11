import { ApplicationFailure } from '@temporalio/common';
import { BillingPaused } from '../services/tinker/index.ts';

/** The name of a failure that only a person can end: the service wants payment. The run waits, and does the same again afterwards. */
export const BILLING_PAUSED = 'BillingPaused';

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
