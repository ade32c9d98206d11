import type { z } from 'zod';
import { BackPressure, type BackPressureLimits, type Reservation } from '../back-pressure/back-pressure.ts';
import { Credential } from '../credentials/credential.ts';
import { RetryLater } from '../errors.ts';
import type { Connection, WaitReport } from '../settings.ts';
import { unlessAborted } from './abort.ts';
import type { Failure, Subject } from './classify.ts';
import { exchange, type HttpAnswer, type HttpCall, type HttpOutcome } from './http.ts';
import { parseJson } from './parse-answer.ts';
import type { Phase, RetryLimits } from './retry.ts';
import { Waiting } from './waiting.ts';

const LONGEST_DETAIL_CHARS = 500;

export type Call = HttpCall & {
  readonly phase: Phase;
  /** What a 404 or 410 means is gone. */
  readonly subject: Subject;
  /** The future that the call is about, for errors. */
  readonly requestId?: string;
  /** What waits are reported as instead of the path. */
  readonly reportedAs?: string;
  /** Sent instead of the client's credential. */
  readonly credential?: string;
  /** What the request takes up while it is under way; it waits until there is room. */
  readonly reserves?: Reservation;
  /** An abort does not break off the request; the good answer that comes nevertheless is given here. */
  readonly onLateAnswer?: ((answer: HttpAnswer) => void) | undefined;
  /** Told of every try that failed, also of those that are repeated. */
  readonly onFailure?: (failure: Failure) => void;
  /** Instead of the client's own. */
  readonly limits?: Partial<RetryLimits>;
};

/** Sends calls and repeats them as `retryOf` decides. All calls of a client go through one caller. */
export class Caller {
  readonly connection: Connection;
  readonly credential: Credential;
  /** How often each future was polled so far: a wait that goes on after a pause counts on. */
  readonly polls = new WeakMap<object, number>();
  /** The service has taken a protobuf body from this client. */
  takesProtobuf = false;
  /** The service has `retrieve_futures`; null until it has answered one. */
  hasFeed: boolean | null = null;
  #backPressure: BackPressure;
  #lastCompletionMs: number;
  #lastAnswerMs: number;
  readonly #onClose = new Set<() => void>();
  readonly #closing = new AbortController();
  readonly #notices = new Set<string>();

  constructor(connection: Connection) {
    this.connection = connection;
    this.credential = new Credential(connection.credentials, connection.clock);
    this.#backPressure = new BackPressure(connection.clock);
    this.#lastCompletionMs = connection.clock.nowMs();
    this.#lastAnswerMs = this.#lastCompletionMs;
  }

  get backPressure(): BackPressure {
    return this.#backPressure;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** The signal for whatever a call waits for: aborted by the call's own, and when the client is closed. */
  untilClosed(signal: AbortSignal | undefined): AbortSignal {
    return signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
  }

  /** @throws the signal's reason; RetryLater when the client is closed */
  sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return this.connection.clock.sleep(ms, this.untilClosed(signal));
  }

  nowMs(): number {
    return this.connection.clock.nowMs();
  }

  /** The service's own limits, once they are known: before any call that they are about. */
  holdBack(limits: BackPressureLimits): void {
    this.#backPressure = new BackPressure(this.connection.clock, limits);
  }

  /** For how long the service has answered nothing at all. */
  get silentForMs(): number {
    return this.nowMs() - this.#lastAnswerMs;
  }

  /** A long call of this client came to its end: the queue moves. */
  noteCompletion(): void {
    this.#lastCompletionMs = this.nowMs();
  }

  /** For how long nothing has completed, as seen by a call that waits since then. */
  stalledForMs(waitingSinceMs: number): number {
    return this.nowMs() - Math.max(waitingSinceMs, this.#lastCompletionMs);
  }

  /** @throws TinkerError when the call failed for good; the signal's reason when it was aborted */
  async send(call: Call): Promise<HttpAnswer> {
    const waiting = new Waiting(this);
    for (;;) {
      const outcome = await this.attempt({ ...call, headers: waiting.headers(call) });
      if ('answer' in outcome) return outcome.answer;
      await waiting.after(outcome.failure, call);
    }
  }

  /** @throws ServiceFailed when the answer does not have the shape of the protocol */
  async json<Schema extends z.ZodType>(call: Call, schema: Schema): Promise<z.infer<Schema>> {
    return parseJson(await this.send(call), schema, this, call.path, call.requestId);
  }

  /** One request, repeated only to replace a refused token. @throws the signal's reason; CredentialRefused */
  async attempt(asked: Call): Promise<HttpOutcome> {
    const call = { ...asked, signal: this.untilClosed(asked.signal) };
    const release = call.reserves && (await this.#backPressure.submission(call.reserves, call.signal));
    try {
      const outcome = await (call.onLateAnswer === undefined ? this.#withCredential(call) : this.#unbroken(call, call.onLateAnswer));
      if (isAnswered(outcome)) this.#lastAnswerMs = this.nowMs();
      if ('answer' in outcome) {
        this.notice(outcome.answer.deprecationNote);
        return outcome;
      }
      return { failure: this.#noted(outcome.failure, call) };
    } finally {
      release?.();
    }
  }

  /** A text of the service without any secret of this client that it might repeat. */
  scrub(text: string): string {
    return without(text, [...this.connection.secrets, ...this.credential.secrets]);
  }

  /** Passes on what the service says to its user; the same words once. */
  notice(text: string | null | undefined): void {
    if (!text || this.#notices.has(text)) return;
    this.#notices.add(text);
    this.connection.onNotice(this.scrub(text));
  }

  noteWait(waitingSinceMs: number, wait: Omit<WaitReport, 'waitedMs'>): void {
    this.connection.onWait({ ...wait, waitedMs: this.nowMs() - waitingSinceMs });
  }

  /** `stop` runs when the client is closed, unless what this returns was called before. */
  onClose(stop: () => void): () => void {
    this.#onClose.add(stop);
    return () => this.#onClose.delete(stop);
  }

  /** Ends what is under way and waits, with RetryLater, and the connections. */
  async close(): Promise<void> {
    this.#closing.abort(new RetryLater('this client was closed; make the call again from another one', { call: 'close' }));
    for (const stop of this.#onClose) stop();
    this.credential.stop();
    await this.connection.connections.destroy();
  }

  async #withCredential(call: Call): Promise<HttpOutcome> {
    if (call.credential !== undefined) return this.#exchange(call.credential, call);
    const key = await unlessAborted(this.credential.header(), call.signal);
    const outcome = await this.#exchange(key, call);
    const isRejected = 'failure' in outcome && outcome.failure.isTokenRejected;
    if (!isRejected || !(await unlessAborted(this.credential.replace(key), call.signal))) return outcome;
    return this.#exchange(await unlessAborted(this.credential.header(), call.signal), call);
  }

  async #exchange(key: string, call: Call): Promise<HttpOutcome> {
    const { connections } = this.connection;
    const { dispatcher } = connections;
    const outcome = await exchange(this.connection, key, call);
    if ('answer' in outcome) return outcome;
    const { failure } = outcome;
    if (failure.isProxyRejection) connections.renew(dispatcher);
    return { failure: { ...failure, detail: without(failure.detail, [key]) } };
  }

  /** @throws the signal's reason at once, while the request goes on */
  async #unbroken({ signal, ...call }: Call, onLateAnswer: (answer: HttpAnswer) => void): Promise<HttpOutcome> {
    signal?.throwIfAborted();
    const outcome = this.#withCredential(call);
    try {
      return await unlessAborted(outcome, signal);
    } catch (error) {
      if (signal?.aborted) outcome.then((late) => 'answer' in late && onLateAnswer(late.answer)).catch(() => {});
      throw error;
    }
  }

  /** Scrubbed before it is cut: a cut secret is not found. */
  #brief(text: string): string {
    return this.scrub(text).slice(0, LONGEST_DETAIL_CHARS);
  }

  #noted(failure: Failure, call: Call): Failure {
    call.onFailure?.(failure);
    if (failure.status === 429 && call.phase === 'sample') this.#backPressure.noteBusy();
    const { detail, requestId } = failure;
    return { ...failure, detail: this.#brief(detail), requestId: requestId === null ? null : this.#brief(requestId) };
  }
}

/** The longest first: one may begin like another. */
function without(text: string, secrets: readonly string[]): string {
  const known = secrets.filter((secret) => secret !== '');
  return known.toSorted((a, b) => b.length - a.length).reduce((clean, secret) => clean.replaceAll(secret, '<secret>'), text);
}

/** By the service itself: a 5xx may come from a proxy before it. */
function isAnswered(outcome: HttpOutcome): boolean {
  return 'answer' in outcome || (outcome.failure.status !== null && outcome.failure.status < 500);
}
