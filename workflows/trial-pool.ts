import { CancellationScope, condition, isCancellation, setHandler, workflowInfo } from '@temporalio/workflow';
import { addPaid, NOTHING_PAID, type Paid } from '../core/measures/usage.ts';
import type { TrialLedger } from '../core/money/trial-ledger.ts';
import type { Slot } from '../core/run/slots.ts';
import type { PinnedTask, TrialSummary } from '../core/run/trial.ts';
import { billingPauseIn, paidInFailure } from './broken-off.ts';
import { progressQuery, type TrialProgress } from './messages.ts';
import { type OpenSlot, paidIn, unstarted } from './open-slot.ts';

/** A place in a batch (task × attempt) and what came of it; a trial that was tried again keeps its slot. */
export type Slotted = { readonly slot: string; readonly trial: TrialSummary };

/** A slot of a batch of tasks. */
export type TaskSlot = Slot<PinnedTask>;

/** All that a pool needs to know of a slot that is filled. */
export type Pooled = { readonly slot: string; readonly trial: Pick<TrialSummary, 'executed' | 'passed'> };

/** What a filled slot took, and what is still to be paid for it. */
export type SlotCost = { readonly paid: Paid; readonly heldUsd: number };

/** Why a pool cannot go on by itself. */
export type Halt = { readonly reason: 'budget' | 'billing' | 'cancelled'; readonly told: string };

/** What a pool hands to the next execution, or to a parent that starts it again. */
export type PoolState<Result> = { readonly done: readonly Result[]; readonly open: readonly OpenSlot[] };

export type PoolOrder<Result> = {
  readonly label: string;
  readonly slots: readonly TaskSlot[];
  readonly state: PoolState<Result> | null;
  readonly ledger: TrialLedger;
  readonly costOf: (result: Result) => SlotCost;
};

/** Fills one slot, or says how it stands when it must be tried again. `reached` notes on the way what must not be done twice. */
export type Filler<Result> = (
  slot: TaskSlot,
  open: OpenSlot,
  reached: (open: OpenSlot) => void,
) => Promise<{ readonly done: Result } | { readonly again: OpenSlot }>;

/** A workflow may have 2,000 activities open; many fewer keep it quick, and a trial has one at a time. */
const MOST_RUNNING = 500;

/**
 * Fills the slots of a batch, at most `concurrency` at once and each only when its reservation fits, and answers the `progress` query.
 * Stops starting new ones when the history grows long: what is left then goes to the next execution.
 */
export class TrialPool<Result extends Pooled> {
  readonly done: Result[];
  private readonly order: PoolOrder<Result>;
  private readonly waiting: OpenSlot[];
  private readonly slots: ReadonlyMap<string, TaskSlot>;
  private readonly running = new Map<string, OpenSlot>();
  private readonly failures: unknown[] = [];
  private brokenOff: Paid = NOTHING_PAID;
  private halt: Halt | null = null;

  constructor(order: PoolOrder<Result>) {
    this.order = order;
    this.slots = new Map(order.slots.map((slot) => [slot.id, slot]));
    this.done = [...(order.state?.done ?? [])];
    const begun = new Map([...this.done, ...(order.state?.open ?? [])].map((known) => [known.slot, known]));
    this.waiting = [...(order.state?.open ?? []), ...order.slots.filter(({ id }) => !begun.has(id)).map(({ id }) => unstarted(id))];
    setHandler(progressQuery, () => this.progress());
  }

  get size(): number {
    return this.order.slots.length;
  }

  /** True when every slot is filled. */
  get complete(): boolean {
    return this.done.length === this.order.slots.length;
  }

  /** What all slots took, those included that were broken off and will be filled again. */
  get paid(): Paid {
    return addPaid(...this.done.map((result) => this.order.costOf(result).paid), ...this.waiting.map(paidIn), this.brokenOff);
  }

  /** Slots that stand as they were made keep nothing; the others must not lose what they took. */
  get state(): PoolState<Result> {
    return { done: this.done, open: this.waiting.filter((open) => open.stage === 'score' || open.retry > 0) };
  }

  /** The least cap under which one more slot can be filled, and under which all can, as far as is known. */
  get needs(): { readonly needUsd: number; readonly restUsd: number } {
    const { ledger } = this.order;
    const wanted = this.waiting.map((open) => this.reservation(open));
    return { needUsd: ledger.needUsd(wanted[0] ?? 0), restUsd: ledger.needUsd(wanted.reduce((sum, usd) => sum + usd, 0)) };
  }

  /**
   * Returns null when every slot is filled or the history is full, else why it cannot go on; nothing runs any more then. When one slot fails
   * for good, no more are started, and it rejects once the running ones have ended.
   */
  async fill(concurrency: number, filler: Filler<Result>): Promise<Halt | null> {
    const places = Math.min(concurrency, MOST_RUNNING);
    for (;;) {
      // Also when cancelled: what still runs is ending, and must have ended before anything is made of the rest.
      await CancellationScope.nonCancellable(() => condition(() => this.running.size === 0 || this.mayStart(places)));
      const next = this.mayStart(places) ? this.waiting.shift() : undefined;
      if (next === undefined) break;
      this.start(next, filler);
    }
    if (this.failures.length > 0) throw this.failures[0];
    if (this.halt !== null) return this.halt;
    const [next] = this.waiting;
    return next && !this.order.ledger.fits(this.reservation(next)) ? { reason: 'budget', told: '' } : null;
  }

  private mayStart(places: number): boolean {
    const [next] = this.waiting;
    if (next === undefined || this.running.size >= places || this.failures.length > 0 || this.halt !== null) return false;
    return !workflowInfo().continueAsNewSuggested && this.order.ledger.fits(this.reservation(next));
  }

  /** What must be set aside to fill a slot; of a trial that only lacks its score, what it has not used. */
  private reservation(open: OpenSlot): number {
    const { perTrialUsd } = this.order.ledger;
    return open.stage === 'score' ? Math.max(0, perTrialUsd - open.trial.usd) : perTrialUsd;
  }

  private start(open: OpenSlot, filler: Filler<Result>): void {
    const slot = this.slots.get(open.slot);
    if (!slot) throw new Error(`${open.slot} is no slot of this batch`);
    this.order.ledger.reserve(open.slot, this.reservation(open));
    this.running.set(open.slot, open);
    void filler(slot, open, (reached) => void this.running.set(open.slot, reached)).then(
      (next) => this.ended(open, next),
      (error) => this.broke(open, error),
    );
  }

  private ended(open: OpenSlot, next: { readonly done: Result } | { readonly again: OpenSlot }): void {
    const { paid, heldUsd } = 'done' in next ? this.order.costOf(next.done) : { paid: paidIn(next.again), heldUsd: 0 };
    this.settle(open, paid.usd, heldUsd);
    if ('done' in next) this.done.push(next.done);
    else this.waiting.unshift(next.again);
  }

  private broke(open: OpenSlot, error: unknown): void {
    const reached = this.running.get(open.slot) ?? open;
    const lost = paidInFailure(error);
    this.settle(open, paidIn(reached).usd + lost.usd, 0);
    this.brokenOff = addPaid(this.brokenOff, lost);
    this.waiting.unshift(reached);
    const pause = billingPauseIn(error);
    if (isCancellation(error)) this.halt = { reason: 'cancelled', told: '' };
    else if (pause !== null) this.halt ??= { reason: 'billing', told: pause };
    else this.failures.push(error);
  }

  private settle(open: OpenSlot, paidUsd: number, heldUsd: number): void {
    this.running.delete(open.slot);
    this.order.ledger.settle(open.slot, { paidUsd: paidUsd - paidIn(open).usd, heldUsd });
  }

  private progress(): TrialProgress {
    const trials = this.done.map((result) => result.trial);
    const count = (test: (trial: Pooled['trial']) => boolean) => trials.filter(test).length;
    const { label, slots, ledger } = this.order;
    return {
      label,
      trials: slots.length,
      done: trials.length,
      running: this.running.size,
      executed: count((trial) => trial.executed),
      passed: count((trial) => trial.passed),
      infraFailed: count((trial) => !trial.executed),
      spentUsd: ledger.spentUsd,
      reservedUsd: ledger.reservedUsd,
    };
  }
}
