import { request } from 'undici';
import { z } from 'zod';
import type { Failure } from './classify.ts';
import type { QueueState } from './errors.ts';
import type { Connection } from './settings.ts';

export type HttpCall = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below `/api/v1/`. */
  readonly path: string;
  /** JSON text, or protobuf bytes. */
  readonly body?: string | Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
};

export type HttpAnswer = { readonly isProtobuf: boolean; readonly body: Uint8Array };
export type HttpOutcome = { readonly answer: HttpAnswer } | { readonly failure: Failure };

const LONGEST_DETAIL_CHARS = 500;
const LONGEST_RETRY_AFTER_MS = 60_000;

/**
 * One HTTP exchange. Anything but a 2xx answer comes back as a failure.
 * @throws the signal's reason when it was aborted
 */
export async function exchange(connection: Connection, credential: string, call: HttpCall): Promise<HttpOutcome> {
  const { method, path, body, signal } = call;
  signal?.throwIfAborted();
  try {
    const response = await request(connection.apiUrl + path, {
      method,
      body: body ?? null,
      headers: {
        accept: 'application/json',
        'user-agent': `stillroom-tinker (protocol ${connection.protocolVersion})`,
        'x-api-key': credential,
        ...(body === undefined ? {} : { 'content-type': typeof body === 'string' ? 'application/json' : 'application/x-protobuf' }),
        ...call.headers,
      },
      headersTimeout: call.timeoutMs ?? connection.requestTimeoutMs,
      bodyTimeout: connection.requestTimeoutMs,
      dispatcher: connection.dispatcher,
      ...(signal === undefined ? {} : { signal }),
    });
    const bytes = await response.body.bytes();
    const { statusCode, headers } = response;
    if (statusCode >= 200 && statusCode < 300) {
      return { answer: { isProtobuf: String(headers['content-type']).includes('application/x-protobuf'), body: bytes } };
    }
    return { failure: failureOf(statusCode, headers, bytes) };
  } catch (error) {
    signal?.throwIfAborted();
    return { failure: connectionFailure(error instanceof Error ? error.message || String(errorCode(error)) : String(error), error) };
  }
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

const failureBodySchema = z.object({
  detail: z.unknown().optional(),
  error: z.unknown().optional(),
  queue_state: z.string().optional(),
});

function failureOf(status: number, headers: Headers, bytes: Uint8Array): Failure {
  // An empty 400 comes from a proxy on the way, not from the service: nothing was judged.
  if (status === 400 && bytes.byteLength === 0) return connectionFailure('an empty 400, as proxies send it', undefined);
  const text = new TextDecoder().decode(bytes);
  const parsed = failureBodySchema.safeParse(jsonOrNull(text));
  const detail = parsed.success ? (parsed.data.detail ?? parsed.data.error ?? text) : text;
  return {
    status,
    detail: (typeof detail === 'string' ? detail : JSON.stringify(detail)).slice(0, LONGEST_DETAIL_CHARS),
    retryAfterMs: retryAfterMs(headers),
    shouldRetry: headers['x-should-retry'] === 'true' ? true : headers['x-should-retry'] === 'false' ? false : null,
    queueState: parsed.success && parsed.data.queue_state !== undefined ? queueStateOf(parsed.data.queue_state) : null,
    requestId: typeof headers['x-request-id'] === 'string' ? headers['x-request-id'] : null,
    isTokenRejected: status === 401 && String(headers['www-authenticate']).includes('error="invalid_token"'),
  };
}

function connectionFailure(detail: string, cause: unknown): Failure {
  return { status: null, detail, retryAfterMs: null, shouldRetry: null, queueState: null, requestId: null, isTokenRejected: false, cause };
}

export function queueStateOf(word: string): QueueState {
  return word === 'active' || word === 'paused_capacity' || word === 'paused_rate_limit' ? word : 'unknown';
}

/** Only waits of up to a minute are believed. */
function retryAfterMs(headers: Headers): number | null {
  const fromMs = Number(headers['retry-after-ms']);
  const wait = Number.isFinite(fromMs) ? fromMs : Number(headers['retry-after']) * 1000;
  return wait > 0 && wait <= LONGEST_RETRY_AFTER_MS ? wait : null;
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Several addresses tried and refused come as an AggregateError without a message. */
function errorCode(error: Error): unknown {
  return 'code' in error ? error.code : error.name;
}
