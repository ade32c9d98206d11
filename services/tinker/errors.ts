import type { CallFate } from './call-fate.ts';

/** Where the service says a waiting request stands; `unknown` for a word it does not define. */
export type QueueState = 'active' | 'paused_capacity' | 'paused_rate_limit' | 'unknown';

export type ErrorContext = {
  /** The call that failed, e.g. `asample`. */
  readonly call: string;
  /** HTTP status, null when there was no answer. */
  readonly status?: number | null;
  /** The future's id, or the service's id of the HTTP request: what its support asks for. */
  readonly requestId?: string | null;
  readonly queueState?: QueueState | null;
  /** When the service wants to be asked again, ms from now; null when it does not say. */
  readonly retryAfterMs?: number | null;
  /** The service's own words. */
  readonly detail?: string | null;
  /** What became of the call, where it is known: see `callFate`. */
  readonly fate?: CallFate | null;
  readonly cause?: unknown;
};

/** Every failure of this client except aborts (they throw the signal's reason). Each subclass is named after what the caller should do next. */
export abstract class TinkerError extends Error {
  readonly call: string;
  readonly status: number | null;
  readonly requestId: string | null;
  readonly queueState: QueueState | null;
  readonly retryAfterMs: number | null;
  readonly detail: string | null;
  /** What became of the call, where that was said; `callFate` knows it of every failure. */
  readonly fate: CallFate | null;

  constructor(message: string, context: ErrorContext) {
    super(`${context.call}: ${message}`, context.cause === undefined ? {} : { cause: context.cause });
    this.name = new.target.name;
    this.call = context.call;
    this.status = context.status ?? null;
    this.requestId = context.requestId ?? null;
    this.queueState = context.queueState ?? null;
    this.retryAfterMs = context.retryAfterMs ?? null;
    this.detail = context.detail ?? null;
    this.fate = context.fate ?? null;
  }

  /** The same failure, with what else is known of it. */
  as(context: Partial<ErrorContext>, words = (said: string) => said): TinkerError {
    const Kind = this.constructor as new (message: string, context: ErrorContext) => TinkerError;
    return new Kind(words(this.message.slice(`${this.call}: `.length)), { ...this, cause: this, ...context });
  }
}

/** The same failure, as one of this future. */
export function ofRequest(error: unknown, requestId: string): unknown {
  return error instanceof TinkerError ? error.as({ requestId }) : error;
}

/** The same failure, as that of a later call which is not even sent because of it. */
export function ofEarlierCall(error: unknown): unknown {
  if (!(error instanceof TinkerError)) return error;
  return error.as({ fate: 'unsent' }, (said) => `not sent: an earlier call of this client failed: ${said}`);
}

/** A setting is missing or wrong before anything was sent: set it and connect again. */
export class SettingMissing extends TinkerError {
  readonly exitCode = 2;
}

/** The service could not be reached or was overloaded for longer than the limits allow. The same call may be made again; a training call from a new `client.training` with the `nextSeqId` from before it. */
export class RetryLater extends TinkerError {}

/** The session no longer exists. Connect again, then make new samplers and reload training state. */
export class SessionLost extends TinkerError {}

/** The service lost this sample. It cost nothing that could be kept: sample again. The sampler does so itself and raises this only when it happens over and over. */
export class ResubmitSample extends TinkerError {}

/** Nobody can say which training calls took effect. Rebuild the model from the last saved state. */
export class TrainingStateUnknown extends TinkerError {}

/** The account must be topped up. Pause, tell a person, then make the same call again, a training call from a new `client.training` with the `nextSeqId` from before it; with a `requestId` of a future, the same wait for its result. */
export class BillingPaused extends TinkerError {}

/** The service rejects this request and will reject it again: change it. */
export class BadRequest extends TinkerError {}

/** No credential can be had, or the service refused it: set another one. */
export class CredentialRefused extends TinkerError {}

/** The service took the request and failed at it, or answered in a form that the protocol does not define. Trying once more may help. */
export class ServiceFailed extends TinkerError {}
