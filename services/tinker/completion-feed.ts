import { completionsSchema } from './answers.ts';
import { type Call, type Caller, parseJson } from './caller.ts';
import { stalledError } from './classify.ts';
import { RetryLater } from './errors.ts';
import { connectionFailure } from './http-failure.ts';
import { Waiting } from './waiting.ts';

/** The result's size in bytes; null when the service does not say. */
type Completion = { readonly sizeBytes: number | null };
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
  /** Completions that came before their sample was waited for. */
  readonly #early = new Map<string, Completion>();
  /** Samples that nobody wants any more. */
  readonly #abandoned = new Set<string>();
  #fetched: string[] = [];
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
    caller.onClose(() => this.#poll.abort());
  }

  /** Waits until the sample has ended, well or not. @throws TinkerError when the service cannot say; the signal's reason */
  completion(requestId: string, signal: AbortSignal | undefined): Promise<Completion> {
    signal?.throwIfAborted();
    const early = this.#early.get(requestId);
    this.#early.delete(requestId);
    if (early !== undefined) return Promise.resolve(early);
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiters.delete(requestId);
        this.#abandoned.add(requestId);
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
    this.#run().finally(() => {
      this.#isRunning = false;
      if (this.#waiters.size > 0) this.#start();
    });
  }

  async #run(): Promise<void> {
    while (!this.#caller.isClosed) {
      if (this.#waiters.size > 0) await this.#pollOnce();
      else if (this.#fetched.length > 0 || this.#cursor !== this.#toldCursor) await this.#tell();
      else return;
    }
    this.#failAll(new RetryLater('this client was closed', { call: 'retrieve_futures' }));
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
        this.#note(parseJson(outcome.answer, completionsSchema, call.path));
        return;
      }
    } catch (error) {
      this.#fetched.push(...fetched);
      if (!signal.aborted) this.#failAll(error);
    }
  }

  /** With nobody waiting, it only says what has been fetched. A failure costs nothing: the next poll says it again. */
  async #tell(): Promise<void> {
    const fetched = this.#takeFetched();
    const call: Call = { ...this.#call(fetched, { timeout: 0 }), timeoutMs: ACKNOWLEDGE_TIMEOUT_MS, phase: 'once' };
    const answer = await this.#caller.send(call).catch(() => null);
    this.#toldCursor = this.#cursor;
    if (answer !== null) this.#note(parseJson(answer, completionsSchema, call.path));
  }

  #call(fetched: readonly string[], more: object = {}): Pick<Call, 'method' | 'path' | 'body' | 'subject'> {
    const target = { type: 'sampling_session', sampling_session_id: this.#samplingSessionId, cloned_sampler_id: this.#clone };
    const body = JSON.stringify({ target, prev_cursor: this.#cursor, ...more, retrieved_request_ids: fetched });
    this.#toldCursor = this.#cursor;
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
      if (this.#abandoned.delete(requestId)) continue;
      const waiter = this.#waiters.get(requestId);
      this.#waiters.delete(requestId);
      if (waiter === undefined) this.#early.set(requestId, { sizeBytes: size ?? null });
      else waiter.resolve({ sizeBytes: size ?? null });
    }
    if (completions.length === 0) this.#showWaits();
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
