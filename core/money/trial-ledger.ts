/** Sums of floating-point dollars may differ in their last digits: this much above a cap is not above it. */
const ROUNDING_USD = 1e-9;

export type LedgerStart = {
  /** Null where there is no cap. */
  readonly capUsd: number | null;
  /** What was paid so far, by trials or otherwise. */
  readonly spentUsd: number;
  /** What finished trials are still going to cost: their share of training. */
  readonly heldUsd: number;
  /** What is set aside for one trial. */
  readonly perTrialUsd: number;
};

/**
 * Money of trials that run at once: each is reserved before it starts and settled when it ends. A trial starts only where what is spent, held
 * and reserved leaves room for it, so the cap is passed by no more than what trials cost above their reservations.
 */
export class TrialLedger {
  #capUsd: number | null;
  #spentUsd: number;
  #heldUsd: number;
  readonly perTrialUsd: number;
  readonly #reserved = new Map<string, number>();

  constructor({ capUsd, spentUsd, heldUsd, perTrialUsd }: LedgerStart) {
    this.#capUsd = capUsd;
    this.#spentUsd = spentUsd;
    this.#heldUsd = heldUsd;
    this.perTrialUsd = perTrialUsd;
  }

  get capUsd(): number | null {
    return this.#capUsd;
  }

  get spentUsd(): number {
    return this.#spentUsd;
  }

  /** Set aside now: for trials that run, and for the training on those that ended. */
  get reservedUsd(): number {
    return [...this.#reserved.values()].reduce((sum, usd) => sum + usd, this.#heldUsd);
  }

  /** The least cap under which `usd` more fits. */
  needUsd(usd: number): number {
    return this.#spentUsd + this.reservedUsd + usd;
  }

  fits(usd: number): boolean {
    return fitsUnder(this.#capUsd, this.needUsd(usd));
  }

  setCap(capUsd: number | null): void {
    this.#capUsd = capUsd;
  }

  /** Sets `usd` aside for a trial. Ask `fits` first: what is under way must be finished, whether it fits or not. */
  reserve(trial: string, usd: number): void {
    if (this.#reserved.has(trial)) throw new Error(`${trial} is reserved already`);
    this.#reserved.set(trial, usd);
  }

  /** The trial ended: its reservation is given back, `paidUsd` was spent, and `heldUsd` is still to be paid for it. */
  settle(trial: string, { paidUsd, heldUsd }: { readonly paidUsd: number; readonly heldUsd: number }): void {
    if (!this.#reserved.delete(trial)) throw new Error(`${trial} was not reserved`);
    this.#spentUsd += paidUsd;
    this.#heldUsd += heldUsd;
  }
}

/** Whether a sum of this size may be reached under the cap; without one any may. */
export function fitsUnder(capUsd: number | null, usd: number): boolean {
  return capUsd === null || usd <= capUsd + ROUNDING_USD;
}
