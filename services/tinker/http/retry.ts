import { type Failure, isServerFault } from './classify.ts';

export type RetryLimits = {
  /** How long one call may show no sign of life: nothing but connection failures and 5xx answers. */
  readonly noProgressMs: number;
  /** How long a call may wait in a queue of a service that answers, while no call of this client completes. */
  readonly stalledMs: number;
};

/**
 * `submit` starts work or reads; `sample` starts a sample; `poll` asks for a future's result, `feed` which futures of a
 * sampling session have ended; `once` is never repeated.
 * Repeating a submission is safe: it carries the same seq_id, and a server runs that once.
 */
export type Phase = 'submit' | 'sample' | 'poll' | 'feed' | 'once';

/** What the current call has been through since its last good answer, before the failure in question. */
export type RetryState = {
  readonly phase: Phase;
  readonly failures: number;
  /** The latest failures that were of the same kind as this one, without one of another kind between them. */
  readonly alike: number;
  /** 400s with a body; a poll's 408 forgives them. */
  readonly badRequests: number;
  readonly proxyRejections: number;
  /** Since the last sign of life. */
  readonly failingForMs: number;
  readonly stalledForMs: number;
  /** The request's body is so large that a busy service needs a longer pause. */
  readonly isLarge: boolean;
};

export type Retry = {
  readonly delayMs: number;
  /** The same idempotency key goes with it: a repetition of the transport, not a new attempt at the call. */
  readonly isOfTransport: boolean;
};

const POLL_BAD_REQUESTS = 3;
const PROXY_REJECTIONS = 16;
const WISHED_RETRIES = 10;
const FAST_POLL_RETRIES = 3;
const UNHURRIED_POLLS = 20;
const FEED_PAUSE_MS = 1000;
const BUSY_SAMPLE_PAUSE_MS = 1000;
const BUSY_LARGE_SAMPLE_PAUSE_MS = 5000;

/**
 * The one function that decides retries: how long to wait before the same request is sent again; null to raise the
 * failure, `stalled` to say that the service answers but nothing moves.
 */
export function retryOf(failure: Failure, state: RetryState, limits: RetryLimits): Retry | 'stalled' | null {
  const wanted = wantedDelayMs(failure, state);
  if (wanted === null) return null;
  const delayMs = failure.retryAfterMs ?? wanted;
  const isAlive = isSignOfLife(failure, state.phase);
  if (isAlive && Math.max(state.stalledForMs, delayMs) > limits.stalledMs) return 'stalled';
  if (!isAlive && state.failingForMs > limits.noProgressMs) return null;
  return { delayMs, isOfTransport: state.phase === 'submit' && failure.shouldRetry !== false };
}

/** The service speaks, it only has no time: one that says when to come back is not dead either. */
export function isSignOfLife({ status, retryAfterMs }: Failure, phase: Phase): boolean {
  const isPending = status === 408 && (phase === 'poll' || phase === 'feed');
  return status === 429 || isPending || retryAfterMs !== null;
}

/** Only a longer wait than ours, as long as other calls are answered. */
export function isHeldPoll({ isUnanswered }: Failure, phase: Phase): boolean {
  return isUnanswered && (phase === 'poll' || phase === 'feed');
}

function wantedDelayMs(failure: Failure, state: RetryState): number | null {
  const { status, shouldRetry } = failure;
  const { phase, failures, alike } = state;
  if (phase === 'once' || failure.isTooLarge) return null;
  if (phase === 'feed') return feedDelayMs(failure, state);
  if (failure.isProxyRejection && state.proxyRejections >= PROXY_REJECTIONS) return null;
  if (isHeldPoll(failure, phase)) return 0;
  // A short first wait: a server that was just restarted, or a kept-alive connection that it closed, is back at once.
  if (status === null) return jittered(Math.min(100 * 2 ** alike, 2000));
  if (status === 429) return phase === 'sample' ? busySamplePauseMs(state) : slowBackoffMs(phase === 'poll' ? alike : failures);
  if (phase === 'poll') {
    if (status === 408) return pendingDelayMs(alike);
    if (status === 400) return state.badRequests < POLL_BAD_REQUESTS ? 0 : null;
    return isServerFault(status) ? pollFaultDelayMs(alike) : null;
  }
  const mayPass = status === 408 || status === 409 || isServerFault(status);
  if (mayPass) return phase === 'sample' || shouldRetry === false ? slowBackoffMs(failures) : backoffMs(failures);
  const isWished = shouldRetry === true && phase === 'submit' && status !== 401 && status !== 402 && status !== 403;
  return isWished && failures < WISHED_RETRIES ? backoffMs(failures) : null;
}

function feedDelayMs({ status }: Failure, { badRequests }: RetryState): number | null {
  if (status === 400) return badRequests < POLL_BAD_REQUESTS ? FEED_PAUSE_MS : null;
  const mayPass = status === null || status === 408 || status === 409 || status === 429 || isServerFault(status);
  return mayPass ? FEED_PAUSE_MS : null;
}

/** At once: the service holds a poll until there is something to say. One that does not is asked ever more slowly, up to once a second. */
export function pendingDelayMs(polls: number): number {
  return Math.min(Math.max(0, polls - UNHURRIED_POLLS) * 10, 1000);
}

function busySamplePauseMs({ isLarge }: RetryState): number {
  return isLarge ? BUSY_LARGE_SAMPLE_PAUSE_MS : BUSY_SAMPLE_PAUSE_MS;
}

function pollFaultDelayMs(alike: number): number {
  return alike < FAST_POLL_RETRIES ? 0 : backoffMs(alike - FAST_POLL_RETRIES);
}

/** Also the pause before a lost sample is submitted again. */
export function backoffMs(failures: number): number {
  return jittered(Math.min(500 * 2 ** failures, 10_000));
}

function slowBackoffMs(failures: number): number {
  return Math.min(1000 * 2 ** failures, 30_000);
}

/** Spread, so that many waiting calls do not come back in one instant. */
function jittered(ms: number): number {
  return ms * (1 - 0.25 * Math.random());
}
