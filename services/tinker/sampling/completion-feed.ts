import { completionsSchema } from '../futures/answers.ts';
import type { Call, Caller } from '../http/caller.ts';
import { stalledError } from '../http/classify.ts';
import { connectionFailure } from '../http/http-failure.ts';
import { parseJson } from '../http/parse-answer.ts';
import { pendingDelayMs } from '../http/retry.ts';
import { Waiting } from '../http/waiting.ts';

/** The result's size in bytes; null when the service does not say. */
type Completion = { readonly sizeBytes: number | null };
/** `before`: the number of the first submission that began after it; only an earlier one may still come for it. */
type Early = Completion & { readonly before: number };
type Waiter = { readonly sinceMs: number; readonly resolve: (completion: Completion) => void; readonly reject: (error: unknown) => void };

const POLL_TIMEOUT_MS = 45_000;
const ACKNOWLEDGE_TIMEOUT_MS = 5000;

/**
 * Which samples of one sampling session have ended, asked for with one long poll for all of them (`retrieve_futures`).
 * It asks only while somebody waits, and tells the service which results have been fetched.
 */
export class CompletionFeed {
  readonly #caller: Caller;
  readonly #samplingSessionId: string;
  readonly #clone: number;
  readonly #stalledMs: number;
  readonly #waiters = new Map<string, Waiter>();
  /** Completions that came before their sample was waited for, in the order in which they came. */
  readonly #early = new Map<string, Early>();
  /** The numbers of the submissions under way, in order. */
  readonly #submissions = new Set<number>();
  #nextSubmission = 0;
  /** What the service may forget and has not been told. */
  #fetched: string[] = [];
  #emptyPolls = 0;
  #cursor = 0;
  #toldCursor = 0;
  #isRunning = false;
  #poll = new AbortController();

  /** `stalledMs`: a wait is given up when nothing of the client has completed for so long. */
  constructor(caller: Caller, samplingSessionId: string, stalledMs: number, clone = 0) {
    this.#caller = caller;
    this.#stalledMs = stalledMs;
    this.#samplingSessionId = samplingSessionId;
    this.#clone = clone;
  }

  /** Says that a sample is being submitted: its completion may come before that was answered. Call what it returns when it is waited for, or never will be. */
  expectOne(): () => void {
    const number = this.#nextSubmission++;
    this.#submissions.add(number);
    return () => {
      this.#submissions.delete(number);
      this.#dropUnwanted();
    };
  }

  /** Waits until the sample has ended, well or not. @throws TinkerError when the service cannot say; the signal's reason */
  async completion(requestId: string, signal: AbortSignal | undefined): Promise<Completion> {
    signal?.throwIfAborted();
    const early = this.#early.get(requestId);
    this.#early.delete(requestId);
    if (early !== undefined) return early;
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiters.delete(requestId);
        if (this.#waiters.size === 0) this.#poll.abort();
        reject(signal?.reason);
      };
      const done = () => signal?.removeEventListener('abort', onAbort);
      this.#waiters.set(requestId, {
        sinceMs: this.#caller.nowMs(),
        resolve: (completion) => {
          done();
          resolve(completion);
        },
        reject: (error) => {
          done();
          reject(error);
        },
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#start();
    });
  }

  /** The result has been fetched: the service may forget it. */
  acknowledge(requestId: string): void {
    this.#fetched.push(requestId);
    this.#start();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#run()
      .catch((error) => this.#failAll(error))
      .finally(() => {
        this.#isRunning = false;
        if (this.#waiters.size > 0) this.#start();
      });
  }

  async #run(): Promise<void> {
    for (;;) {
      if (this.#waiters.size > 0) await this.#pollOnce();
      else if (this.#fetched.length === 0 && this.#cursor === this.#toldCursor) return;
      else if (!(await this.#tell())) return;
    }
  }

  async #pollOnce(): Promise<void> {
    this.#poll = new AbortController();
    const { signal } = this.#poll;
    const waiting = new Waiting(this.#caller);
    const fetched = this.#takeFetched();
    try {
      for (;;) {
        const call: Call = {
          ...this.#call(fetched),
          timeoutMs: POLL_TIMEOUT_MS,
          phase: 'feed',
          reportedAs: 'Sample',
          limits: { stalledMs: this.#stalledMs },
          signal,
        };
        const outcome = await this.#caller.attempt({ ...call, headers: waiting.headers(call) });
        if ('failure' in outcome) {
          await waiting.after(outcome.failure, call);
          continue;
        }
        const answer = parseJson(outcome.answer, completionsSchema, this.#caller, call.path);
        this.#toldCursor = this.#cursor;
        fetched.length = 0;
        this.#note(answer);
        if (answer.completions.length === 0) await this.#caller.sleep(pendingDelayMs(this.#emptyPolls++), signal);
        else this.#emptyPolls = 0;
        return;
      }
    } catch (error) {
      this.#fetched.push(...fetched);
      if (!signal.aborted) this.#failAll(error);
    }
  }

  /** With nobody waiting, it only says what may be forgotten. False when that failed, which costs nothing: the next poll says it again. */
  async #tell(): Promise<boolean> {
    const fetched = this.#takeFetched();
    const cursor = this.#cursor;
    const call: Call = { ...this.#call(fetched, { timeout: 0 }), timeoutMs: ACKNOWLEDGE_TIMEOUT_MS, phase: 'once' };
    try {
      await this.#caller.send(call);
      this.#toldCursor = cursor;
      return true;
    } catch {
      this.#fetched.push(...fetched);
      return false;
    }
  }

  #call(fetched: readonly string[], more: object = {}): Pick<Call, 'method' | 'path' | 'body' | 'subject'> {
    const target = { type: 'sampling_session', sampling_session_id: this.#samplingSessionId, cloned_sampler_id: this.#clone };
    const body = JSON.stringify({ target, prev_cursor: this.#cursor, ...more, retrieved_request_ids: fetched });
    return { method: 'POST', path: 'retrieve_futures', body, subject: 'sampling session' };
  }

  #takeFetched(): string[] {
    const fetched = this.#fetched;
    this.#fetched = [];
    return fetched;
  }

  #note({ completions, cursor }: ReturnType<typeof completionsSchema.parse>): void {
    this.#cursor = cursor;
    for (const { request_id: requestId, response_payload_uncompressed_size: size } of completions) {
      const waiter = this.#waiters.get(requestId);
      this.#waiters.delete(requestId);
      if (waiter === undefined) this.#early.set(requestId, { sizeBytes: size ?? null, before: this.#nextSubmission });
      else waiter.resolve({ sizeBytes: size ?? null });
    }
    this.#dropUnwanted();
    if (completions.length === 0) this.#showWaits();
  }

  /**
   * Completions that no submission under way can be of: of abandoned samples, or of those whose submission lost its answer.
   * The cursor says that they were heard; only what was fetched is acknowledged, as by the official client.
   */
  #dropUnwanted(): void {
    const [oldest = Number.POSITIVE_INFINITY] = this.#submissions;
    for (const [requestId, { before }] of this.#early) {
      if (before > oldest) return;
      this.#early.delete(requestId);
    }
  }

  #showWaits(): void {
    for (const [requestId, waiter] of this.#waiters) {
      this.#caller.noteWait('Sample', waiter.sinceMs, null, null);
      const stalledForMs = this.#caller.stalledForMs(waiter.sinceMs);
      if (stalledForMs <= this.#stalledMs) continue;
      this.#waiters.delete(requestId);
      waiter.reject(stalledError({ ...connectionFailure('', undefined), requestId }, 'retrieve_futures', stalledForMs));
    }
  }

  #failAll(error: unknown): void {
    for (const waiter of this.#waiters.values()) waiter.reject(error);
    this.#waiters.clear();
  }
}
