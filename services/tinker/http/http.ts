import { errors, request } from 'undici';
import { BadRequest } from '../errors.ts';
import type { Connection } from '../settings.ts';
import { BodyTooLarge, readBody } from './body.ts';
import type { Failure } from './classify.ts';
import { connectionFailure, failureOf } from './http-failure.ts';
import { inPlainWords } from './plain-words.ts';

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

export type HttpAnswer = {
  readonly isProtobuf: boolean;
  readonly body: Uint8Array;
  /** What the service says about this client's age. */
  readonly deprecationNote?: string;
};
export type HttpOutcome = { readonly answer: HttpAnswer } | { readonly failure: Failure };

/** So many times the longest pause within a body may all of it take. */
const SLOWEST_BODY = 10;
const MAX_ANSWER_BYTES = 2 ** 30;

/**
 * One HTTP exchange. Anything but a 2xx answer comes back as a failure; one redirection of a GET is followed.
 * @throws the signal's reason when it was aborted; BadRequest when a header cannot be sent
 */
export async function exchange(connection: Connection, credential: string, call: HttpCall): Promise<HttpOutcome> {
  return exchangeAt(new URL(connection.apiUrl + call.path), { ...connection.headers, 'x-api-key': credential }, connection, call, true);
}

/** `secrets`: the headers that are for the service only. */
async function exchangeAt(
  url: URL,
  secrets: Readonly<Record<string, string>>,
  connection: Connection,
  call: HttpCall,
  mayRedirect: boolean,
): Promise<HttpOutcome> {
  const { method, body, signal } = call;
  signal?.throwIfAborted();
  try {
    const response = await request(url, {
      method,
      body: body ?? null,
      headers: {
        accept: 'application/json',
        'user-agent': `stillroom-tinker (protocol ${connection.protocolVersion})`,
        ...secrets,
        ...(body === undefined ? {} : { 'content-type': typeof body === 'string' ? 'application/json' : 'application/x-protobuf' }),
        ...call.headers,
      },
      headersTimeout: call.timeoutMs ?? connection.requestTimeoutMs,
      bodyTimeout: connection.requestTimeoutMs,
      dispatcher: connection.connections.dispatcher,
      ...(signal === undefined ? {} : { signal }),
    });
    const { statusCode, headers } = response;
    const declaredBytes = typeof headers['content-length'] === 'string' ? Number(headers['content-length']) : null;
    const totalMs = SLOWEST_BODY * connection.requestTimeoutMs;
    const bytes = await readBody(response.body, declaredBytes, { totalMs, maxBytes: MAX_ANSWER_BYTES });
    if (statusCode >= 200 && statusCode < 300) {
      const answer = { isProtobuf: String(headers['content-type']).includes('application/x-protobuf'), body: bytes };
      const { 'x-deprecation-note': note } = headers;
      return { answer: typeof note === 'string' ? { ...answer, deprecationNote: note } : answer };
    }
    const target = mayRedirect && method === 'GET' ? redirection(statusCode, headers.location, url) : null;
    if (target !== null) return await exchangeAt(target, target.origin === url.origin ? secrets : {}, connection, call, false);
    return { failure: failureOf(statusCode, headers, bytes, connection.clock.epochMs()) };
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof errors.InvalidArgumentError) throw new BadRequest(`cannot be sent: ${error.message}`, { call: call.path });
    if (error instanceof BodyTooLarge) return { failure: { ...connectionFailure(error.message, error), isTooLarge: true } };
    return { failure: connectionFailure(inPlainWords(error, url.host), error) };
  }
}

function redirection(status: number, location: string | string[] | undefined, from: URL): URL | null {
  if (status < 300 || status === 304 || status >= 400 || typeof location !== 'string') return null;
  return URL.parse(location, from.href);
}
