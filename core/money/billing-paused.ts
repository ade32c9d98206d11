/** The type of a failure that only a person can end: the service wants payment. The run waits, and does the same again afterwards. */
export const BILLING_PAUSED = 'BillingPaused';
