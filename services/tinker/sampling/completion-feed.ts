import { TinkerError } from '../errors.ts';
import { completionsSchema } from '../futures/answers.ts';
import { POLL_TIMEOUT_MS } from '../futures/futures.ts';
import type { Call, Caller } from '../http/caller.ts';
import { isMissingCall, stalledError } from '../http/classify.ts';
import { connectionFailure } from '../http/http-failure.ts';
import { parseJson } from '../http/parse-answer.ts';
import { pendingDelayMs } from '../http/retry.ts';
import { Waiting } from '../http/waiting.ts';
import { type Completion, CompletionBoard } from './completion-board.ts';

const ACKNOWLEDGE_TIMEOUT_MS = 5000;
/** Of a poll's answer that the work is not done: the feed says it by leaving it out. */
const PENDING_STATUS = 408;
const OF_UNKNOWN_SIZE: Completion = { sizeBytes: null };

/**
 * Which samples of one sampling session have ended, asked for with one long poll for all of them (`retrieve_futures`).
 * It asks only while somebody waits, and tells the service which results have been fetched. Where the service turns out not to have
 * the call, each sample is polled for by itself: every wait here ends at once, with nothing known.
 */
export class CompletionFeed {
  readonly #caller: Caller;
  readonly #samplingSessionId: string;
  readonly #clone: number;
  readonly #stalledMs: number;
  readonly #board = new CompletionBoard();
  /** What the service may forget and has not been told. */
  #fetched: string[] = [];
  #idlePolls = 0;
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
    return this.#board.expectOne();
  }

  /** Waits until the sample has ended, well or not. @throws TinkerError when the service cannot say; the signal's reason */
  async completion(requestId: string, signal: AbortSignal | undefined): Promise<Completion> {
    signal?.throwIfAborted();
    if (this.#caller.hasFeed === false) return OF_UNKNOWN_SIZE;
    const completion = this.#board.wait(requestId, this.#caller.nowMs(), signal);
    if (this.#board.isWaitedFor) this.#start();
    try {
      return await completion;
    } finally {
      if (signal?.aborted && !this.#board.isWaitedFor) this.#poll.abort();
    }
  }

  /** The result has been fetched: the service may forget it. */
  acknowledge(requestId: string): void {
    if (this.#caller.hasFeed === false) return;
    this.#fetched.push(requestId);
    this.#start();
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#run()
      .catch((error) => this.#board.failAll(error))
      .finally(() => {
        this.#isRunning = false;
        if (this.#board.isWaitedFor) this.#start();
      });
  }

  async #run(): Promise<void> {
    for (;;) {
      if (this.#board.isWaitedFor) await this.#pollOnce();
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
        this.#caller.hasFeed = true;
        if (this.#note(answer)) this.#idlePolls = 0;
        else await this.#idle(signal);
        return;
      }
    } catch (error) {
      this.#fetched.push(...fetched);
      if (!signal.aborted) this.#failed(error);
    }
  }

  /** A poll that brought nothing that is waited for, such as the same completions again. */
  async #idle(signal: AbortSignal): Promise<void> {
    const nextTryMs = pendingDelayMs(this.#idlePolls++);
    this.#showWaits(nextTryMs);
    await this.#caller.sleep(nextTryMs, signal);
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

  /** Returns whether somebody waited for one of the completions. */
  #note({ completions, cursor }: ReturnType<typeof completionsSchema.parse>): boolean {
    this.#cursor = cursor;
    return this.#board.complete(
      completions.map((each) => [each.request_id, { sizeBytes: each.response_payload_uncompressed_size ?? null }]),
    );
  }

  #showWaits(nextTryMs: number): void {
    for (const { requestId, sinceMs } of this.#board.waits()) {
      this.#caller.noteWait(sinceMs, { call: 'Sample', queueState: null, reason: null, status: PENDING_STATUS, nextTryMs });
      const stalledForMs = this.#caller.stalledForMs(sinceMs);
      if (stalledForMs <= this.#stalledMs) continue;
      this.#board.fail(requestId, stalledError({ ...connectionFailure('', undefined), requestId }, 'retrieve_futures', stalledForMs));
    }
  }

  #failed(error: unknown): void {
    const isMissing = error instanceof TinkerError && isMissingCall(error.status);
    if (isMissing && this.#caller.hasFeed !== true) {
      this.#caller.hasFeed = false;
      this.#fetched = [];
      this.#board.completeAll(OF_UNKNOWN_SIZE);
    } else this.#board.failAll(error);
  }
}
