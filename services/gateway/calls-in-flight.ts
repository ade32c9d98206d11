/** The calls of one trial that are under way, so that they can be ended and waited for. */
export class CallsInFlight {
  readonly #calls = new Set<AbortController>();
  readonly #settling = new Set<Promise<unknown>>();

  get count(): number {
    return this.#calls.size;
  }

  /** Runs a call whose signal aborts when the client leaves, or when all are aborted. */
  run<T>(clientGone: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const call = new AbortController();
    const abort = () => call.abort(clientGone.reason);
    this.#calls.add(call);
    clientGone.addEventListener('abort', abort, { once: true });
    if (clientGone.aborted) abort();
    const running = work(call.signal).finally(() => {
      this.#calls.delete(call);
      clientGone.removeEventListener('abort', abort);
    });
    const settled = running.catch(() => {}).finally(() => this.#settling.delete(settled));
    this.#settling.add(settled);
    return running;
  }

  abort(reason: Error): void {
    for (const call of this.#calls) call.abort(reason);
  }

  /** Resolves when none is under way. */
  async quiet(): Promise<void> {
    while (this.#settling.size > 0) await Promise.allSettled(this.#settling);
  }
}
