import { type Failure, isServerFault } from './classify.ts';

export type RetryLimits = {
  /** How long one call may get nothing but connection failures and 5xx answers. */
  readonly noProgressMs: number;
  /** How long a call may wait in a queue of a service that answers, while no call of this client completes. */
  readonly stalledMs: number;
};

/**
 * `submit` starts work or reads; `sample` starts a sample; `poll` asks for a future's result; `once` is never repeated.
 * Repeating a submission is safe: it carries the same seq_id and idempotency key, and a server runs it once.
 */
export type Phase = 'submit' | 'sample' | 'poll' | 'once';

/** What the current call has been through; `failures` and `failingSinceMs` start over after any good answer. */
export type RetryState = {
  readonly phase: Phase;
  readonly failures: number;
  readonly badRequests: number;
  readonly failingForMs: number;
  readonly stalledForMs: number;
  /** The request's body is so large that a busy service needs a longer pause. */
  readonly isLarge: boolean;
};

const POLL_BAD_REQUESTS = 3;
const FAST_POLL_RETRIES = 3;
const BUSY_SAMPLE_PAUSE_MS = 1000;
const BUSY_LARGE_SAMPLE_PAUSE_MS = 5000;

/** The one function that decides retries: milliseconds to wait before the same request is sent again, or null to raise. */
export function retryDelayMs(failure: Failure, state: RetryState, limits: RetryLimits): number | null {
  const delay = wantedDelayMs(failure, state);
  if (delay === null) return null;
  const isQueued = failure.status === 429 || (failure.status === 408 && state.phase === 'poll');
  const isOver = isQueued ? state.stalledForMs > limits.stalledMs : state.failingForMs > limits.noProgressMs;
  return isOver ? null : (failure.retryAfterMs ?? delay);
}

function wantedDelayMs({ status, shouldRetry }: Failure, { phase, failures, badRequests, isLarge }: RetryState): number | null {
  if (phase === 'once' || shouldRetry === false) return null;
  // A short first wait: a server that was just restarted, or a kept-alive connection that it closed, is back at once.
  if (status === null) return jittered(Math.min(100 * 2 ** failures, 2000));
  if (status === 429) {
    if (phase === 'sample') return isLarge ? BUSY_LARGE_SAMPLE_PAUSE_MS : BUSY_SAMPLE_PAUSE_MS;
    return Math.min(1000 * 2 ** failures, 30_000);
  }
  if (phase === 'poll') {
    if (status === 408) return 0;
    if (status === 400) return badRequests < POLL_BAD_REQUESTS ? 0 : null;
    if (isServerFault(status)) return failures < FAST_POLL_RETRIES ? 0 : backoffMs(failures - FAST_POLL_RETRIES);
  } else if (status === 408 || status === 409 || isServerFault(status)) {
    return backoffMs(failures);
  }
  return shouldRetry === true && status !== 401 && status !== 402 && status !== 403 ? backoffMs(failures) : null;
}

/** Also the pause before a lost sample is submitted again. */
export function backoffMs(failures: number): number {
  return jittered(Math.min(500 * 2 ** failures, 10_000));
}

/** Spread, so that many waiting calls do not come back in one instant. */
function jittered(ms: number): number {
  return ms * (1 - 0.25 * Math.random());
}
