/** Gives back what was taken. Calling it again does nothing. */
export type Release = () => void;

type Waiter = { readonly amount: number; readonly admit: () => void };

/**
 * Lets through as much at once as it has capacity for, first come first served: a large item is not overtaken by small
 * ones. An item above the whole capacity passes alone.
 */
export class Semaphore {
  readonly #capacity: number;
  readonly #queue: Waiter[] = [];
  #inUse = 0;

  /** In whatever unit the amounts have. */
  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Waits for its turn. @throws the signal's reason; an aborted waiter leaves the queue */
  async acquire(amount: number, signal: AbortSignal | undefined): Promise<Release> {
    signal?.throwIfAborted();
    if (this.#queue.length === 0 && this.#hasRoom(amount)) return this.#take(amount);
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        amount,
        admit: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve(this.#take(amount));
        },
      };
      const onAbort = () => {
        this.#queue.splice(this.#queue.indexOf(waiter), 1);
        reject(signal?.reason);
        this.#admitWaiting();
      };
      this.#queue.push(waiter);
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }

  #take(amount: number): Release {
    this.#inUse += amount;
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#inUse -= amount;
      this.#admitWaiting();
    };
  }

  #admitWaiting(): void {
    for (let [next] = this.#queue; next !== undefined && this.#hasRoom(next.amount); [next] = this.#queue) {
      this.#queue.shift();
      next.admit();
    }
  }

  #hasRoom(amount: number): boolean {
    return this.#inUse === 0 || this.#inUse + amount <= this.#capacity;
  }
}
