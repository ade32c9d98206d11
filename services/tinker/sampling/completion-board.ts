import { ofRequest } from '../errors.ts';

/** The result's size in bytes; null when the service does not say. */
export type Completion = { readonly sizeBytes: number | null };
/** `before`: the number of the first submission that began after it; only an earlier one may still come for it. */
type Recent = Completion & { readonly before: number };
type Waiter = { readonly sinceMs: number; readonly resolve: (completion: Completion) => void; readonly reject: (error: unknown) => void };

/**
 * Who waits for which samples of one sampling session, and the completions that came before their sample was waited for.
 * Several may wait for one request id: a service may promise it twice.
 */
export class CompletionBoard {
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** In the order in which they came. */
  readonly #recent = new Map<string, Recent>();
  /** The numbers of the submissions under way, in order. */
  readonly #submissions = new Set<number>();
  #nextSubmission = 0;

  get isWaitedFor(): boolean {
    return this.#waiters.size > 0;
  }

  /** See `CompletionFeed.expectOne`. */
  expectOne(): () => void {
    const number = this.#nextSubmission++;
    this.#submissions.add(number);
    return () => {
      this.#submissions.delete(number);
      this.#dropUnwanted();
    };
  }

  /** @throws what the wait is ended with; the signal's reason */
  wait(requestId: string, sinceMs: number, signal: AbortSignal | undefined): Promise<Completion> {
    const recent = this.#recent.get(requestId);
    if (recent !== undefined) return Promise.resolve(recent);
    const { promise, resolve, reject } = Promise.withResolvers<Completion>();
    const waiter = { sinceMs, resolve, reject };
    const waiters = this.#waiters.get(requestId) ?? new Set();
    this.#waiters.set(requestId, waiters.add(waiter));
    const onAbort = () => {
      waiters.delete(waiter);
      if (waiters.size === 0 && this.#waiters.get(requestId) === waiters) this.#waiters.delete(requestId);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', onAbort, { once: true });
    return promise.finally(() => signal?.removeEventListener('abort', onAbort));
  }

  /** Returns whether somebody waited for one of them. */
  complete(completions: Iterable<readonly [requestId: string, completion: Completion]>): boolean {
    let isNews = false;
    for (const [requestId, completion] of completions) {
      for (const waiter of this.#taken(requestId)) {
        waiter.resolve(completion);
        isNews = true;
      }
      this.#recent.set(requestId, { ...completion, before: this.#nextSubmission });
    }
    this.#dropUnwanted();
    return isNews;
  }

  /** Ends every wait as if its sample had ended. */
  completeAll(completion: Completion): void {
    for (const requestId of [...this.#waiters.keys()]) for (const waiter of this.#taken(requestId)) waiter.resolve(completion);
  }

  failAll(error: unknown): void {
    for (const requestId of [...this.#waiters.keys()]) this.fail(requestId, ofRequest(error, requestId));
  }

  fail(requestId: string, error: unknown): void {
    for (const waiter of this.#taken(requestId)) waiter.reject(error);
  }

  /** Each request that is waited for, and since when. */
  waits(): { readonly requestId: string; readonly sinceMs: number }[] {
    return [...this.#waiters].map(([requestId, waiters]) => ({
      requestId,
      sinceMs: Math.min(...[...waiters].map(({ sinceMs }) => sinceMs)),
    }));
  }

  #taken(requestId: string): Iterable<Waiter> {
    const waiters = this.#waiters.get(requestId) ?? [];
    this.#waiters.delete(requestId);
    return waiters;
  }

  /**
   * Completions that no submission under way can be of: of abandoned samples, or of those whose submission lost its answer.
   * The cursor says that they were heard; only what was fetched is acknowledged, as by the official client.
   */
  #dropUnwanted(): void {
    const [oldest = Number.POSITIVE_INFINITY] = this.#submissions;
    for (const [requestId, { before }] of this.#recent) {
      if (before > oldest) return;
      this.#recent.delete(requestId);
    }
  }
}
