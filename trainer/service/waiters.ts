/** Lets calls wait until something named by a key has happened. */
export class Waiters<K> {
  readonly #waiting = new Map<K, Set<() => void>>();

  /** Wakes everybody who waits for `key`. */
  notify(key: K): void {
    const waiting = this.#waiting.get(key);
    this.#waiting.delete(key);
    for (const wake of waiting ?? []) wake();
  }

  /** Resolves at the next `notify(key)` or after `timeoutMs`, whichever is first. Look at the state again afterwards. */
  wait(key: K, timeoutMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting);
    const wake = () => {
      clearTimeout(timer);
      waiting.delete(wake);
      if (waiting.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
      resolve();
    };
    const timer = setTimeout(wake, timeoutMs);
    waiting.add(wake);
    return promise;
  }
}
