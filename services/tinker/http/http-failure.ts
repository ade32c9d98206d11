import { errors } from 'undici';
import { z } from 'zod';
import type { QueueState } from '../errors.ts';
import type { Failure } from './classify.ts';

/** An HTTP answer that is no success, read for what it says about trying again. */

export type Headers = Readonly<Record<string, string | string[] | undefined>>;

const failureBodySchema = z.object({
  detail: z.unknown().optional(),
  error: z.unknown().optional(),
  queue_state: z.string().optional(),
  queue_state_reason: z.string().nullish(),
});

export function failureOf(status: number, headers: Headers, bytes: Uint8Array, epochMs: number): Failure {
  // An empty 400 comes from a proxy on the way, not from the service: nothing was judged.
  if (status === 400 && bytes.byteLength === 0) {
    return { ...connectionFailure('an empty 400, as proxies send it', undefined), isProxyRejection: true };
  }
  const text = new TextDecoder().decode(bytes);
  const parsed = failureBodySchema.safeParse(jsonOrNull(text));
  const said = parsed.success ? parsed.data : {};
  const detail = said.detail ?? said.error ?? said.queue_state_reason ?? text;
  return {
    status,
    detail: typeof detail === 'string' ? detail : JSON.stringify(detail),
    retryAfterMs: retryAfterMs(headers, epochMs),
    shouldRetry: headers['x-should-retry'] === 'true' ? true : headers['x-should-retry'] === 'false' ? false : null,
    queueState: said.queue_state === undefined ? null : queueStateOf(said.queue_state),
    requestId: typeof headers['x-request-id'] === 'string' ? headers['x-request-id'] : null,
    isTokenRejected: status === 401 && String(headers['www-authenticate']).includes('error="invalid_token"'),
    isProxyRejection: false,
    isUnanswered: false,
    isTooLarge: false,
  };
}

export function connectionFailure(detail: string, cause: unknown): Failure {
  return {
    status: null,
    detail,
    retryAfterMs: null,
    shouldRetry: null,
    queueState: null,
    requestId: null,
    isTokenRejected: false,
    isProxyRejection: false,
    isUnanswered: cause instanceof errors.HeadersTimeoutError,
    isTooLarge: false,
    cause,
  };
}

export function queueStateOf(word: string): QueueState {
  return word === 'active' || word === 'paused_capacity' || word === 'paused_rate_limit' ? word : 'unknown';
}

/** From `retry-after-ms`, or `retry-after` in seconds or as a date. Null when nothing later than now is wished. */
function retryAfterMs(headers: Headers, epochMs: number): number | null {
  const wishes = [Number(headers['retry-after-ms']), Number(headers['retry-after']) * 1000, dateOf(headers['retry-after']) - epochMs];
  const wish = wishes.find(Number.isFinite);
  return wish !== undefined && wish > 0 ? wish : null;
}

function dateOf(value: string | string[] | undefined): number {
  return typeof value === 'string' ? Date.parse(value) : Number.NaN;
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
