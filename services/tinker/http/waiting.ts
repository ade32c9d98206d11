import { randomUUID } from 'node:crypto';
import { type CallFate, pollFate, submissionFate } from '../call-fate.ts';
import type { Call, Caller } from './caller.ts';
import { errorOf, type Failure, stalledError } from './classify.ts';
import { isHeldPoll, isSignOfLife, type RetryState, retryOf } from './retry.ts';

/** Above it a busy service gets the longer pause before the body is sent again. */
const LARGE_BODY_CHARS = 128 * 1024;

/** What one call has been through: it counts its failures, waits between them and gives up where `retryOf` says so. */
export class Waiting {
  readonly sinceMs: number;
  readonly #caller: Caller;
  #failures = 0;
  #alike = 0;
  #kind: string | null = null;
  #badRequests = 0;
  #proxyRejections = 0;
  /** An earlier try may have been taken by the service. */
  #isUnclear = false;
  #failingSinceMs: number | null = null;
  #idempotencyKey = newIdempotencyKey();
  /** With that key. */
  #repetitions = 0;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.sinceMs = caller.nowMs();
  }

  /** For the next request of this call. */
  headers(call: Call): Record<string, string> {
    const headers = { ...call.headers, 'x-stainless-retry-count': String(this.#repetitions) };
    return call.method === 'GET' ? headers : { 'x-idempotency-key': this.#idempotencyKey, ...headers };
  }

  /** A good answer came; the next request is a new one. */
  answered(): void {
    this.#failures = 0;
    this.#alike = 0;
    this.#kind = null;
    this.#failingSinceMs = null;
    this.#newAttempt();
  }

  /** Waits until the request may be sent again. @throws TinkerError when it may not; the signal's reason when aborted */
  async after(failure: Failure, call: Call): Promise<void> {
    this.#note(failure, call);
    const state = this.#state(call, failure);
    const retry = retryOf(failure, state, { ...this.#caller.connection, ...call.limits });
    const known = call.requestId === undefined ? failure : { ...failure, requestId: call.requestId };
    const fate = this.#fate(failure, call);
    if (retry === 'stalled') throw stalledError(known, call.path, state.stalledForMs, fate);
    if (retry === null) throw errorOf(known, call.path, call.subject, fate);
    this.#count(failure);
    if (retry.isOfTransport) this.#repetitions++;
    else this.#newAttempt();
    const { queueState, status } = failure;
    const reported = {
      call: call.reportedAs ?? call.path,
      queueState,
      status,
      reason: failure.detail || null,
      nextTryMs: Math.round(retry.delayMs),
    };
    this.#caller.noteWait(this.sinceMs, reported);
    await this.#caller.sleep(retry.delayMs, call.signal);
  }

  /**
   * Of a sample that brought no clear answer before, nobody knows whether the service has its number. A training call may be made again
   * under its own: a refusal is the service's last word on it.
   */
  #fate({ status }: Failure, { phase }: Call): CallFate {
    if (phase === 'poll' || phase === 'feed') return pollFate(status);
    const fate = submissionFate(status);
    this.#isUnclear ||= fate === 'unknown' && phase === 'sample';
    return this.#isUnclear ? 'unknown' : fate;
  }

  #state({ body, phase }: Call, failure: Failure): RetryState {
    const failingForMs = this.#failingSinceMs === null ? 0 : this.#caller.nowMs() - this.#failingSinceMs;
    return {
      phase,
      failures: this.#failures,
      alike: this.#alike,
      badRequests: this.#badRequests,
      proxyRejections: this.#proxyRejections,
      // The heartbeats tell a service that holds a poll from one that is gone.
      failingForMs: isHeldPoll(failure, phase) ? Math.min(failingForMs, this.#caller.silentForMs) : failingForMs,
      stalledForMs: this.#caller.stalledForMs(this.sinceMs),
      isLarge: typeof body === 'string' && body.length > LARGE_BODY_CHARS,
    };
  }

  #note(failure: Failure, { phase }: Call): void {
    const kind = kindOf(failure);
    this.#alike = kind === this.#kind ? this.#alike : 0;
    this.#kind = kind;
    if (failure.status === 408 && phase === 'poll') this.#badRequests = 0;
    if (isSignOfLife(failure, phase)) this.#failingSinceMs = null;
    else this.#failingSinceMs ??= this.#caller.nowMs();
  }

  #count(failure: Failure): void {
    this.#failures++;
    this.#alike++;
    if (failure.status === 400) this.#badRequests++;
    if (failure.isProxyRejection) this.#proxyRejections++;
  }

  #newAttempt(): void {
    this.#idempotencyKey = newIdempotencyKey();
    this.#repetitions = 0;
  }
}

/** A busy or unreachable service, a failing one, a pending future, and all others. */
function kindOf({ status }: Failure): string {
  if (status === null || status === 429) return 'away';
  if (status === 408) return 'pending';
  return status >= 500 ? 'failing' : 'other';
}

export const newIdempotencyKey = () => `stillroom-${randomUUID()}`;
