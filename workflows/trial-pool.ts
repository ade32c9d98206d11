import { CancellationScope, condition, setHandler, workflowInfo } from '@temporalio/workflow';
import type { Slot } from '../core/run/slots.ts';
import type { PinnedTask, TrialSummary } from '../core/run/trial.ts';
import { progressQuery, type TrialProgress } from './messages.ts';

/** A place in a batch (task × attempt) and what came of it; a trial that was tried again keeps its slot. */
export type Slotted = { readonly slot: string; readonly trial: TrialSummary };

/** A slot of a batch of tasks. */
export type TaskSlot = Slot<PinnedTask>;

/** All that a pool needs to know of a slot that is filled. */
type Pooled = { readonly slot: string; readonly trial: Pick<TrialSummary, 'executed' | 'passed'> };

/** A workflow may have 2,000 activities open; many fewer keep it quick, and a trial has one at a time. */
const MOST_RUNNING = 500;

/**
 * Fills the slots of a batch, at most `concurrency` at once, and answers the `progress` query.
 * Stops starting new ones when the history grows long: what is left then goes to the next execution.
 */
export class TrialPool<Result extends Pooled> {
  readonly done: Result[];
  private running = 0;
  private readonly label: string;
  private readonly slots: readonly TaskSlot[];

  constructor(label: string, slots: readonly TaskSlot[], done: readonly Result[]) {
    this.label = label;
    this.slots = slots;
    this.done = [...done];
    setHandler(progressQuery, () => this.progress());
  }

  /** True when every slot is filled. */
  get complete(): boolean {
    return this.done.length === this.slots.length;
  }

  /** Returns when every slot is filled or the history is full. When one slot fails for good, no more are started, and it rejects once the running ones have ended. */
  async fill(concurrency: number, runOne: (slot: TaskSlot) => Promise<Result>): Promise<void> {
    const filled = new Set(this.done.map((result) => result.slot));
    const failures: unknown[] = [];
    const mostRunning = Math.min(concurrency, MOST_RUNNING);
    for (const slot of this.slots.filter(({ id }) => !filled.has(id))) {
      await CancellationScope.nonCancellable(() => condition(() => this.running < mostRunning || failures.length > 0));
      if (failures.length > 0 || workflowInfo().continueAsNewSuggested) break;
      this.running++;
      void runOne(slot)
        .then(
          (result) => void this.done.push(result),
          (error) => void failures.push(error),
        )
        .finally(() => this.running--);
    }
    // Also when cancelled: what still runs is ending, and must have ended before anything is made of the rest.
    await CancellationScope.nonCancellable(() => condition(() => this.running === 0));
    if (failures.length > 0) throw failures[0];
  }

  private progress(): TrialProgress {
    const trials = this.done.map((result) => result.trial);
    const count = (test: (trial: Pooled['trial']) => boolean) => trials.filter(test).length;
    return {
      label: this.label,
      trials: this.slots.length,
      done: trials.length,
      running: this.running,
      executed: count((trial) => trial.executed),
      passed: count((trial) => trial.passed),
      infraFailed: count((trial) => !trial.executed),
    };
  }
}
