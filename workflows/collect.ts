import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import { slotsOf } from '../core/run/slots.ts';
import type { ModelRef, TaskList } from '../core/run/trial.ts';
import type { CollectedTrajectories } from '../core/run/warm-up.ts';
import { type Allowance, blocked, type ChildOutcome, ledgerOf } from './child-outcome.ts';
import { attemptSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { type PoolState, TrialPool } from './trial-pool.ts';

export type CollectInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly teacher: ModelRef;
  readonly tasks: TaskList;
  readonly allowance: Allowance;
};

/** The batch of what the teacher plays: what its trial ids begin with. */
export const batchOfCollection = (trialPrefix: string) => `${trialPrefix}-w`;

/** What a collection has done when it goes on elsewhere. */
export type CollectDone = PoolState;

/** Has the teacher play every training task, `rolloutsPerTask` times each, and keeps what it did, also where it cannot go on. */
export async function collect(input: CollectInput, begun?: CollectDone): Promise<ChildOutcome<CollectedTrajectories, CollectDone>> {
  const { run, plan, teacher: model } = input;
  const state = begun ?? null;
  const ledger = ledgerOf(input.allowance, state);
  // Checked before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not trained on.
  const tasks = await briefActivities().listTasks({ tasks: input.tasks });
  const slots = slotsOf(batchOfCollection(input.trialPrefix), tasks, plan.warmup.rolloutsPerTask);
  const pool = new TrialPool({ label: 'warm-up', run, plan, slots, state, ledger });
  const halt = await pool.fill(plan.trialConcurrency, async ({ task }, open) => {
    const summary = `warm-up · ${task.id}`;
    const made = await attemptSlot({ run, plan, task, who: 'teacher', model, maxTurns: plan.maxTurns, trains: false, summary }, open);
    return 'again' in made ? made : { done: { slot: open.slot, trial: made.trial, score: null } };
  });
  // All this is paid for: it is kept, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    const done = await pool.keep();
    const trials = done.done.kept;
    if (halt) {
      if (trials.count > 0) await briefActivities().keepTrajectories({ run, trials, areAll: false });
      return blocked(pool, halt, 'trials', done);
    }
    if (!pool.complete) return continueAsNew<typeof collect>({ ...input, allowance: { ...input.allowance, capUsd: ledger.capUsd } }, done);
    await briefActivities().checkTasks({ tasks: input.tasks });
    return { kind: 'done', result: await briefActivities().keepTrajectories({ run, trials, areAll: true }) };
  });
}
