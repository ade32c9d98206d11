import { randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { errorOf, type Failure, type Subject } from './classify.ts';
import { Credential } from './credential.ts';
import { type QueueState, ServiceFailed } from './errors.ts';
import { exchange, type HttpAnswer, type HttpCall, type HttpOutcome } from './http.ts';
import { type Phase, retryDelayMs } from './retry.ts';
import type { Connection } from './settings.ts';

export type Call = HttpCall & {
  readonly phase: Phase;
  /** What a 404 or 410 means is gone. */
  readonly subject: Subject;
  /** The future that the call is about, for errors. */
  readonly requestId?: string;
  /** Sent instead of the client's credential. */
  readonly credential?: string;
  /** When the wait began that this call continues, ms of `performance.now()`. */
  readonly waitingSinceMs?: number;
};

/** Sends calls and repeats them as `retryDelayMs` decides. All calls of a client go through one caller. */
export class Caller {
  readonly connection: Connection;
  readonly credential: Credential;
  #lastCompletionMs = performance.now();

  constructor(connection: Connection) {
    this.connection = connection;
    this.credential = new Credential(connection.apiKey);
  }

  /** A long call of this client came to its end: the queue moves. */
  noteCompletion(): void {
    this.#lastCompletionMs = performance.now();
  }

  /** For how long nothing has completed, as seen by a call that waits since then. */
  stalledForMs(waitingSinceMs: number): number {
    return performance.now() - Math.max(waitingSinceMs, this.#lastCompletionMs);
  }

  /** @throws TinkerError when the call failed for good; the signal's reason when it was aborted */
  async send(call: Call): Promise<HttpAnswer> {
    // One key for all repeats of this call.
    const idempotency = call.method === 'GET' ? {} : { 'x-idempotency-key': `stillroom-${randomUUID()}` };
    const waitingSinceMs = call.waitingSinceMs ?? performance.now();
    let failingSinceMs: number | null = null;
    let badRequests = 0;
    for (let attempt = 0; ; attempt++) {
      const headers = { ...call.headers, ...idempotency, 'x-stainless-retry-count': String(attempt) };
      const outcome = await this.#exchange({ ...call, headers });
      if ('answer' in outcome) return outcome.answer;
      const { failure } = outcome;
      failingSinceMs ??= performance.now();
      const delayMs = retryDelayMs(
        failure,
        {
          phase: call.phase,
          failures: attempt,
          badRequests,
          failingForMs: performance.now() - failingSinceMs,
          stalledForMs: this.stalledForMs(waitingSinceMs),
          isLarge: typeof call.body === 'string' && call.body.length > LARGE_BODY_CHARS,
        },
        this.connection,
      );
      if (delayMs === null) throw errorOf(withRequestId(failure, call), call.path, call.subject);
      if (failure.status === 400) badRequests++;
      this.noteWait(call.path, waitingSinceMs, failure.queueState, failure.detail);
      await sleep(delayMs, call.signal);
    }
  }

  /** @throws ServiceFailed when the answer does not have the shape of the protocol */
  async json<Schema extends z.ZodType>(call: Call, schema: Schema): Promise<z.infer<Schema>> {
    return parseJson(await this.send(call), schema, call.path);
  }

  noteWait(call: string, waitingSinceMs: number, queueState: QueueState | null, reason: string | null): void {
    this.connection.onWait({ call, waitedMs: performance.now() - waitingSinceMs, queueState, reason });
  }

  /** A refused token is replaced and the request replayed once. */
  async #exchange(call: Call): Promise<HttpOutcome> {
    if (call.credential !== undefined) return exchange(this.connection, call.credential, call);
    const key = await this.credential.header();
    const outcome = await exchange(this.connection, key, call);
    const isRejected = 'failure' in outcome && outcome.failure.isTokenRejected;
    if (!isRejected || !(await this.credential.replace(key))) return outcome;
    return exchange(this.connection, await this.credential.header(), call);
  }
}

/** Above it a busy service gets the longer pause before the body is sent again. */
const LARGE_BODY_CHARS = 128 * 1024;

const decoder = new TextDecoder();

/** @throws ServiceFailed when the answer is no JSON of this shape */
export function parseJson<Schema extends z.ZodType>(answer: HttpAnswer, schema: Schema, call: string): z.infer<Schema> {
  let value: unknown;
  try {
    value = JSON.parse(decoder.decode(answer.body));
  } catch (cause) {
    throw new ServiceFailed('the answer is no JSON; is TINKER_BASE_URL a Tinker-compatible service?', { call, cause });
  }
  return parseValue(value, schema, call);
}

/** @throws ServiceFailed naming the first field that does not fit */
export function parseValue<Schema extends z.ZodType>(value: unknown, schema: Schema, call: string): z.infer<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.') || 'the whole body';
  throw new ServiceFailed(`the answer does not fit the protocol at ${field}: ${issue?.message}`, { call, cause: parsed.error });
}

/** @throws the signal's reason */
export function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

function withRequestId(failure: Failure, call: Call): Failure {
  return call.requestId === undefined ? failure : { ...failure, requestId: call.requestId };
}
