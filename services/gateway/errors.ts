import { ERROR_STATUS, type ErrorCode } from './error-codes.ts';

/** Thrown by a sampler that is full for now: the agent is told to come back (HTTP 429), and the call may succeed later unchanged. */
export class SamplerBusy extends Error {
  override readonly name = 'SamplerBusy';
  readonly retryAfterMs: number;
  constructor(message: string, retryAfterMs: number) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

/** Thrown by a sampler that cannot be reached (HTTP 503). Any other error of a sampler is answered with 502. */
export class SamplerUnavailable extends Error {
  override readonly name = 'SamplerUnavailable';
}

/** Thrown by a sampler whose service wants payment first: no call can succeed until a person has acted, so the agent is told to stop (HTTP 410). */
export class SamplerUnpaid extends Error {
  override readonly name = 'SamplerUnpaid';
}

/**
 * Thrown by a sampler whose service takes less than this prompt and the room for an answer: no call of this length can succeed, and the
 * agent is told so in the words of a prompt that is too long. `limitTokens` is null where the service does not say it.
 */
export class SamplerOverflow extends Error {
  override readonly name = 'SamplerOverflow';
  readonly promptTokens: number;
  readonly limitTokens: number | null;
  constructor(message: string, promptTokens: number, limitTokens: number | null) {
    super(message);
    this.promptTokens = promptTokens;
    this.limitTokens = limitTokens;
  }
}

/** An answer that is an error in OpenAI's shape. `message` goes to the agent: no secrets, and not the words that clients read as a quota error. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly status: (typeof ERROR_STATUS)[ErrorCode];
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly headers: Readonly<Record<string, string>>;

  constructor(code: ErrorCode, message: string, more: { param?: string | null; headers?: Record<string, string> } = {}) {
    super(message);
    this.status = ERROR_STATUS[code];
    this.code = code;
    this.param = more.param ?? null;
    this.headers = more.headers ?? {};
  }

  body() {
    return { error: { message: this.message, type: typeOf(this.status), param: this.param, code: this.code } };
  }
}

/** LiteLLM goes by `invalid_request_error` before it looks at the status, so a call that may be sent again must not be called that. */
function typeOf(status: GatewayError['status']): string {
  if (status >= 500) return 'server_error';
  if (status === 429) return 'overloaded_error';
  return status === 401 ? 'authentication_error' : 'invalid_request_error';
}

/** The one form that LiteLLM, harbor's terminus-2 and OpenHands all read as "context too long". `unit` is what the prompt was measured in. */
export function contextOverflow(prompt: number, limitTokens: number, unit: 'input tokens' | 'characters' = 'input tokens'): GatewayError {
  return new GatewayError(
    'context_length_exceeded',
    `This model's maximum context length is ${limitTokens} tokens. However, your request has ${prompt} ${unit}. ` +
      'Please reduce the length of the messages.',
    { param: 'messages' },
  );
}

export function invalidRequest(param: string, message: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/** Maps what a sampler threw to the agent's answer. The cause stays in the trial's record; an agent learns only what to do. */
export function samplerFailure(cause: unknown): GatewayError {
  if (cause instanceof SamplerBusy) {
    const seconds = Math.max(1, Math.ceil(cause.retryAfterMs / 1000));
    return new GatewayError('model_busy', `The model is busy. Send the same request again in ${seconds} s.`, {
      headers: { 'retry-after': String(seconds), 'retry-after-ms': String(Math.max(1, Math.ceil(cause.retryAfterMs))) },
    });
  }
  // A service that does not say its limit has none above this prompt.
  if (cause instanceof SamplerOverflow) return contextOverflow(cause.promptTokens, cause.limitTokens ?? cause.promptTokens);
  if (cause instanceof SamplerUnpaid) return new GatewayError('trial_suspended', 'This trial cannot go on now. Stop the agent.');
  if (cause instanceof SamplerUnavailable)
    return new GatewayError('model_unavailable', 'The model cannot be reached. Nothing was sampled; send the same request again.');
  return new GatewayError('model_failed', "The model failed to answer. The trial's record has the cause.");
}

export function trialEnded(): GatewayError {
  return new GatewayError('trial_ended', 'This trial has ended; its key is dead. Stop the agent.');
}
