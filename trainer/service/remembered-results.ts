import type { StoredResult } from './run-ledger.ts';

/** How many results that clients have fetched are remembered, for answers that were lost on their way: those fetched last. */
export const REMEMBERED_FETCHED = 1000;
/** How many are remembered that nobody has fetched: the newest. */
export const REMEMBERED_UNFETCHED = 20_000;

/**
 * The results of a model by number. Which were fetched lives in memory only: after a restart all count as not fetched. A result that
 * `isNeeded` is kept besides, as long as it is.
 */
export class RememberedResults {
  readonly #isNeeded: (seq: number) => boolean;
  readonly #results = new Map<number, StoredResult>();
  /** Oldest result first. */
  readonly #unfetched = new Set<number>();
  /** Least recently fetched first. */
  readonly #fetched = new Set<number>();

  constructor(isNeeded: (seq: number) => boolean) {
    this.#isNeeded = isNeeded;
  }

  add(result: StoredResult): void {
    const { seq } = result.record;
    this.#results.set(seq, result);
    if (!this.#fetched.has(seq)) this.#unfetched.add(seq);
    this.#forgetBeyond(this.#unfetched, REMEMBERED_UNFETCHED);
  }

  get(seq: number): StoredResult | null {
    return this.#results.get(seq) ?? null;
  }

  /** Takes note that a client was given the result. */
  markFetched(seq: number): void {
    if (!this.#results.has(seq)) return;
    this.#unfetched.delete(seq);
    this.#fetched.delete(seq);
    this.#fetched.add(seq);
    this.#forgetBeyond(this.#fetched, REMEMBERED_FETCHED);
  }

  isFetched(seq: number): boolean {
    return this.#fetched.has(seq);
  }

  all(): readonly StoredResult[] {
    return [...this.#results.values()];
  }

  /** Forgets the results, to be added anew, but not which of them were fetched. */
  clear(): void {
    this.#results.clear();
    this.#unfetched.clear();
  }

  /** Of all but the last `limit` those that are not needed. */
  #forgetBeyond(seqs: Set<number>, limit: number): void {
    let surplus = seqs.size - limit;
    for (const seq of seqs) {
      if (surplus <= 0) return;
      surplus -= 1;
      if (this.#isNeeded(seq)) continue;
      seqs.delete(seq);
      this.#results.delete(seq);
    }
  }
}
