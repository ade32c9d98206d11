import { CancellationScope, condition, isCancellation, setHandler, sleep, workflowInfo } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import { addPaid, NOTHING_PAID, type Paid } from '../core/measures/usage.ts';
import type { TrialLedger } from '../core/money/trial-ledger.ts';
import type { BookName } from '../core/recordings/book-name.ts';
import { MOST_TRIALS_OPEN } from '../core/run/batch-sizes.ts';
import type { PlayedSlot } from '../core/run/kept-trials.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import { nextStreak, type Streak, sameCauseText } from '../core/run/same-cause.ts';
import type { Slot } from '../core/run/slots.ts';
import type { PinnedTask, TrialSummary } from '../core/run/trial.ts';
import { billingPauseIn, paidInFailure } from './broken-off.ts';
import { type CarriedSlots, costOf, FilledSlots } from './filled-slots.ts';
import { progressQuery, type TrialProgress } from './messages.ts';
import { type Again, bookOf, type OpenSlot, paidIn, unstarted } from './open-slot.ts';
import { readBooks } from './read-books.ts';

/** A slot of a batch of tasks. */
export type TaskSlot = Slot<PinnedTask>;

/** Trials that one workflow task starts: the SDK ends one that computes for 5 s, and tries it again for as long as it does. */
export const MOST_STARTED_AT_ONCE = 32;

/** Why a pool cannot go on by itself. */
export type Halt = { readonly reason: 'budget' | 'billing' | 'cancelled' | 'failing'; readonly told: string };

/** What a pool hands to the next execution, or to a parent that starts it again. */
export type PoolState = { readonly done: CarriedSlots; readonly open: readonly OpenSlot[]; readonly streak?: Streak };

export type PoolOrder = {
  /** What a person reads beside the progress. */
  readonly label: string;
  readonly run: BlobRef;
  readonly plan: Pick<RunPlan, 'sameCauseFailures'>;
  readonly slots: readonly TaskSlot[];
  /** What an earlier execution did of it. */
  readonly state: PoolState | null;
  readonly ledger: TrialLedger;
};

/** Fills one slot, or says how it stands when it must be tried again. `reached` notes on the way what must not be done twice. */
export type Filler = (slot: TaskSlot, open: OpenSlot, reached: (open: OpenSlot) => void) => Promise<{ readonly done: PlayedSlot } | Again>;

/**
 * Fills the slots of a batch, at most `concurrency` at once and each only when its reservation fits, and answers the `progress` query.
 * Stops starting new ones when the history grows long: what is left then goes to the next execution.
 */
export class TrialPool {
  private readonly done: FilledSlots;
  private readonly order: PoolOrder;
  private readonly waiting: OpenSlot[];
  private readonly slots: ReadonlyMap<string, TaskSlot>;
  private readonly running = new Map<string, OpenSlot>();
  private readonly failures: unknown[] = [];
  private brokenOff: Paid = NOTHING_PAID;
  /** Books of slots that were broken off without a word of what they took. */
  private readonly untold: BookName[] = [];
  private halt: Halt | null = null;
  /** Failures one after the other for one cause, in the order in which trials ended. */
  private streak: Streak | null;

  constructor(order: PoolOrder) {
    const { run, slots, state } = order;
    this.order = order;
    this.streak = state?.streak ?? null;
    this.slots = new Map(slots.map((slot) => [slot.id, slot]));
    this.done = new FilledSlots(
      run,
      slots.map(({ id }) => id),
      state?.done,
    );
    const open = state?.open ?? [];
    const opened = new Set(open.map(({ slot }) => slot));
    this.waiting = [...open, ...slots.filter(({ id }) => !this.done.has(id) && !opened.has(id)).map(({ id }) => unstarted(id))];
    setHandler(progressQuery, () => this.progress());
  }

  get count(): { readonly done: number; readonly all: number } {
    return { done: this.done.count, all: this.order.slots.length };
  }

  /** True when every slot is filled. */
  get complete(): boolean {
    return this.done.count === this.order.slots.length;
  }

  /** What all slots took, those included that were broken off and will be filled again. */
  get paid(): Paid {
    return addPaid(this.done.paid, ...this.waiting.map(paidIn), this.brokenOff);
  }

  /** What came of the slots so far, as it travels. Slots that stand as they were made keep nothing; the others must not lose what they took. */
  async keep(): Promise<PoolState> {
    const open = this.waiting.filter((open) => open.stage === 'score' || open.retry > 0);
    return { done: await this.done.keep(), open, ...(this.streak === null ? {} : { streak: this.streak }) };
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
  async fill(concurrency: number, filler: Filler): Promise<Halt | null> {
    const places = Math.min(concurrency, MOST_TRIALS_OPEN);
    let startedAtOnce = 0;
    for (;;) {
      if (!this.mayStart(places)) {
        // Also when cancelled: what still runs is ending, and must have ended before anything is made of the rest.
        await CancellationScope.nonCancellable(() => condition(() => this.running.size === 0 || this.mayStart(places)));
        startedAtOnce = 0;
      } else if (startedAtOnce === MOST_STARTED_AT_ONCE) {
        await CancellationScope.nonCancellable(() => sleep(1));
        startedAtOnce = 0;
      }
      const next = this.mayStart(places) ? this.waiting.shift() : undefined;
      if (next === undefined && this.running.size > 0) continue;
      if (next === undefined) break;
      startedAtOnce++;
      this.start(next, filler);
    }
    this.brokenOff = addPaid(this.brokenOff, await readBooks(this.order.run, this.untold.splice(0)));
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

  private start(open: OpenSlot, filler: Filler): void {
    const slot = this.slots.get(open.slot);
    if (!slot) throw new Error(`${open.slot} is no slot of this batch`);
    this.order.ledger.reserve(open.slot, this.reservation(open));
    this.running.set(open.slot, open);
    void filler(slot, open, (reached) => void this.running.set(open.slot, reached)).then(
      (next) => this.ended(open, next),
      (error) => this.broke(open, error),
    );
  }

  private ended(open: OpenSlot, next: { readonly done: PlayedSlot } | Again): void {
    const { paid, heldUsd } = 'done' in next ? costOf(next.done) : { paid: paidIn(next.again), heldUsd: 0 };
    this.settle(open, paid.usd, heldUsd);
    if ('done' in next) this.done.add(next.done);
    else this.waiting.unshift(next.again);
    this.judge('done' in next ? next.done.trial : next.failed);
  }

  /** What failed so often for one cause will fail again: nothing more is started. */
  private judge(trial: TrialSummary): void {
    const { plan, label } = this.order;
    const most = plan.sameCauseFailures ?? 0;
    this.streak = nextStreak(this.streak, trial);
    if (most > 0 && this.streak !== null && this.streak.inARow >= most)
      this.halt ??= { reason: 'failing', told: sameCauseText(label, this.streak) };
  }

  private broke(open: OpenSlot, error: unknown): void {
    const reached = this.running.get(open.slot) ?? open;
    const told = paidInFailure(error);
    if (told === null) this.untold.push(bookOf(reached));
    this.settle(open, paidIn(reached).usd + (told?.usd ?? 0), 0);
    this.brokenOff = addPaid(this.brokenOff, told ?? NOTHING_PAID);
    this.waiting.unshift(reached);
    const pause = billingPauseIn(error);
    // A trial whose worker died before it heard of the cancellation ends by its timeout.
    if (isCancellation(error) || CancellationScope.current().consideredCancelled) this.halt = { reason: 'cancelled', told: '' };
    else if (pause !== null) this.halt ??= { reason: 'billing', told: pause };
    else this.failures.push(error);
  }

  private settle(open: OpenSlot, paidUsd: number, heldUsd: number): void {
    this.running.delete(open.slot);
    this.order.ledger.settle(open.slot, { paidUsd: paidUsd - paidIn(open).usd, heldUsd });
  }

  private progress(): TrialProgress {
    const { label, slots, ledger } = this.order;
    const { count: done, executed, passed } = this.done;
    const { spentUsd, reservedUsd } = ledger;
    const counts = { done, running: this.running.size, executed, passed, infraFailed: done - executed };
    const failing = this.streak && { inARow: this.streak.inARow, words: this.streak.words };
    return { label, trials: slots.length, ...counts, failing, spentUsd, reservedUsd };
  }
}
