import { BadRequest, BillingPaused, CredentialRefused, SettingMissing, TinkerError } from './errors.ts';

/**
 * What became of a call that failed, as far as is known:
 * - `unsent`: it never left this client;
 * - `refused`: the service answered that it does not take it; nothing was done, and nothing is charged;
 * - `unpaid`: the same, until somebody pays: then the same call may be made again;
 * - `standing`: the service has taken it and keeps the result back until somebody pays: then it may be waited for again;
 * - `unknown`: it may have been done, and charged for.
 */
export type CallFate = 'unsent' | 'refused' | 'unpaid' | 'standing' | 'unknown';

/** The one place that says what a failed call came to. */
export function callFate(error: unknown): CallFate {
  if (!(error instanceof TinkerError)) return 'unknown';
  if (error.fate !== null) return error.fate;
  // Without an answer of the service these are this client's own judgement, before it sends anything.
  const isOwn = error instanceof SettingMissing || error instanceof BadRequest || error instanceof CredentialRefused;
  return isOwn && error.status === null && error.requestId === null ? 'unsent' : 'unknown';
}

/** Answers to a submission of which the service did nothing: it is wrong, not allowed, too large, one too many, or of something that is gone. */
const REFUSALS: readonly (number | null)[] = [400, 401, 403, 404, 405, 410, 413, 415, 422, 429, 501];

/** What the answer to a submission says of it; null is no answer. */
export function submissionFate(status: number | null): CallFate {
  if (status === 402) return 'unpaid';
  return REFUSALS.includes(status) ? 'refused' : 'unknown';
}

/** What the answer to a poll says of the call that is waited for. */
export function pollFate(status: number | null): CallFate {
  return status === 402 ? 'standing' : 'unknown';
}

/** The same failure, as one of a call that the service had taken before. */
export function ofTakenCall(error: unknown): unknown {
  return withFate(error, error instanceof BillingPaused ? 'standing' : 'unknown');
}

/** The same failure, as one of a call that the service had lost before: what it lost may have been done. */
export function ofResubmittedCall(error: unknown): unknown {
  return callFate(error) === 'standing' ? error : withFate(error, 'unknown');
}

/** The same failure, as one of a call that was to be sent after what failed. */
export function ofUnsentCall(error: unknown): unknown {
  return withFate(error, 'unsent');
}

function withFate(error: unknown, fate: CallFate): unknown {
  return error instanceof TinkerError && error.fate !== fate ? error.as({ fate }) : error;
}
