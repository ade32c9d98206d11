import type { CallFate } from '../call-fate.ts';
import {
  BadRequest,
  BillingPaused,
  CredentialRefused,
  type ErrorContext,
  type QueueState,
  ResubmitSample,
  RetryLater,
  ServiceFailed,
  SessionLost,
  type TinkerError,
  TrainingStateUnknown,
} from '../errors.ts';

/** What a missing thing (404, 410) would be: it decides what the caller must rebuild. */
export type Subject = 'session' | 'sampling session' | 'sample' | 'model' | 'other';

/** An HTTP exchange that did not succeed. */
export type Failure = {
  /** Null when there was no HTTP answer. */
  readonly status: number | null;
  readonly detail: string;
  /** The service's own wish, from retry-after and x-should-retry. */
  readonly retryAfterMs: number | null;
  readonly shouldRetry: boolean | null;
  readonly queueState: QueueState | null;
  readonly requestId: string | null;
  /** A 401 that says the exchanged token, not the key behind it, is at fault. */
  readonly isTokenRejected: boolean;
  /** An empty 400: a proxy on the way refused, the service has not seen the request. */
  readonly isProxyRejection: boolean;
  /** The request got through and was not answered in its time: what a service does that holds a poll for longer. */
  readonly isUnanswered: boolean;
  /** The answer has more bytes than are read of any. */
  readonly isTooLarge: boolean;
  readonly cause?: unknown;
};

/** The one place that maps an HTTP outcome to an error class. `fate` is what became of the call. */
export function errorOf(failure: Failure, call: string, subject: Subject, fate: CallFate = 'unknown'): TinkerError {
  const { status, detail } = failure;
  const context: ErrorContext = { call, ...failure, fate };
  if (failure.isTooLarge) return new ServiceFailed(detail, context);
  switch (status) {
    case null:
      return new RetryLater(`no answer from the service (${detail})`, context);
    case 401:
    case 403:
      return new CredentialRefused(
        `the service refused the credential (${status}: ${detail}); check TINKER_API_KEY or what stands in for it`,
        context,
      );
    case 402:
      return new BillingPaused(`the service asks for payment (402: ${detail}); top up the account, then repeat the call`, context);
    case 404:
    case 410:
      return missing(subject, context, `${status}: ${detail}`);
    case 408:
    case 409:
    case 429:
      return new RetryLater(`the service is busy (${status}: ${detail})`, context);
    default:
      if (isServerFault(status)) return new RetryLater(`the service is failing (${status}: ${detail})`, context);
      return new BadRequest(`the service rejects the request (${status}: ${detail})`, context);
  }
}

/** A call that waits in a queue of a service that answers, but where nothing completes. */
export function stalledError(failure: Failure, call: string, stalledForMs: number, fate: CallFate = 'unknown'): TinkerError {
  const { detail, queueState, retryAfterMs } = failure;
  const queue = `${queueState ?? 'no state given'}${detail === '' ? '' : `, ${detail}`}`;
  if (retryAfterMs !== null) {
    return new RetryLater(`the service asks to come back in ${Math.round(retryAfterMs / 1000)} s (${queue})`, { call, ...failure, fate });
  }
  return new RetryLater(`nothing has completed for ${Math.round(stalledForMs / 1000)} s (queue: ${queue})`, { call, ...failure, fate });
}

/** A future that ended with `{error, category}`. Only the category `user` says that the request was at fault. */
export function futureError(error: string, category: string, call: string, requestId: string): TinkerError {
  const context = { call, requestId, detail: error };
  const byCaller = category === 'user' || category === 'user_error';
  return byCaller
    ? new BadRequest(error, context)
    : new ServiceFailed(`the service failed at the request (${category}): ${error}`, context);
}

/** 501 is a decision of the server, not a fault that may pass. */
export function isServerFault(status: number): boolean {
  return status >= 500 && status !== 501;
}

/** What servers answer that do not have the call. Also what some answer for a thing that is not there. */
export function isMissingCall(status: number | null): boolean {
  return status === 404 || status === 405 || status === 501;
}

function missing(subject: Subject, context: ErrorContext, detail: string): TinkerError {
  switch (subject) {
    case 'session':
    case 'sampling session':
      return new SessionLost(`the service no longer knows this ${subject} (${detail})`, context);
    case 'sample':
      return new ResubmitSample(`the service lost the sample (${detail})`, context);
    case 'model':
      return new TrainingStateUnknown(
        `the service lost the model or the call's result, or never had it (${detail}); rebuild the model from its last saved state`,
        context,
      );
    case 'other':
      return new BadRequest(`not found (${detail})`, context);
  }
}
