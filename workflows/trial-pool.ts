import { CancellationScope, condition, setHandler, sleep, workflowInfo } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import { MOST_TRIALS_OPEN } from '../core/run/batch-sizes.ts';
import type { PlayedSlot } from '../core/run/kept-trials.ts';
import type { Slot } from '../core/run/slots.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import { type CarriedSlots, FilledSlots } from './filled-slots.ts';
import { progressQuery, type TrialProgress } from './messages.ts';

/** A slot of a batch of tasks. */
export type TaskSlot = Slot<PinnedTask>;

/** Trials that one workflow task starts: the SDK ends one that computes for 5 s, and tries it again for as long as it does. */
export const MOST_STARTED_AT_ONCE = 32;

export type Batch = {
  /** What a person reads beside the progress. */
  readonly label: string;
  readonly run: BlobRef;
  readonly slots: readonly TaskSlot[];
  /** What an earlier execution did of it. */
  readonly carried: CarriedSlots | undefined;
};

/**
 * Fills the slots of a batch, at most `concurrency` at once, and answers the `progress` query.
 * Stops starting new ones when the history grows long: what is left then goes to the next execution.
 */
export class TrialPool {
  private readonly done: FilledSlots;
  private running = 0;
  private readonly label: string;
  private readonly slots: readonly TaskSlot[];

  constructor({ label, run, slots, carried }: Batch) {
    this.label = label;
    this.slots = slots;
    const ids = slots.map(({ id }) => id);
    this.done = new FilledSlots(run, ids, carried);
    setHandler(progressQuery, () => this.progress());
  }

  /** True when every slot is filled. */
  get complete(): boolean {
    return this.done.count === this.slots.length;
  }

  /** What came of the slots so far, as it travels. */
  keep(): Promise<CarriedSlots> {
    return this.done.keep();
  }

  /** Returns when every slot is filled or the history is full. When one slot fails for good, no more are started, and it rejects once the running ones have ended. */
  async fill(concurrency: number, runOne: (slot: TaskSlot) => Promise<PlayedSlot>): Promise<void> {
    const failures: unknown[] = [];
    let startedAtOnce = 0;
    const mostRunning = Math.min(concurrency, MOST_TRIALS_OPEN);
    for (const slot of this.slots.filter(({ id }) => !this.done.has(id))) {
      if (this.running >= mostRunning) {
        await CancellationScope.nonCancellable(() => condition(() => this.running < mostRunning || failures.length > 0));
        startedAtOnce = 0;
      }
      if (startedAtOnce === MOST_STARTED_AT_ONCE) {
        await CancellationScope.nonCancellable(() => sleep(1));
        startedAtOnce = 0;
      }
      if (failures.length > 0 || workflowInfo().continueAsNewSuggested) break;
      this.running++;
      startedAtOnce++;
      void runOne(slot)
        .then(
          (result) => this.done.add(result),
          (error) => void failures.push(error),
        )
        .finally(() => this.running--);
    }
    // Also when cancelled: what still runs is ending, and must have ended before anything is made of the rest.
    await CancellationScope.nonCancellable(() => condition(() => this.running === 0));
    if (failures.length > 0) throw failures[0];
  }

  private progress(): TrialProgress {
    const { count: done, executed, passed } = this.done;
    return { label: this.label, trials: this.slots.length, done, running: this.running, executed, passed, infraFailed: done - executed };
  }
}
