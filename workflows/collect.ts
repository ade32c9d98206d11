import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import { addPaid, type Paid } from '../core/measures/usage.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import { inSlotOrder, slotsOf } from '../core/run/slots.ts';
import type { ModelRef, PinnedTask, TrialSummary } from '../core/run/trial.ts';
import type { CollectedTrajectories, Trajectory } from '../core/run/warm-up.ts';
import { type Allowance, blocked, type ChildOutcome, ledgerOf } from './child-outcome.ts';
import { attemptSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { type PoolState, TrialPool } from './trial-pool.ts';

export type CollectInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly teacher: ModelRef;
  readonly tasks: readonly PinnedTask[];
  readonly allowance: Allowance;
};

type Played = { readonly slot: string; readonly trial: Trajectory; readonly paid: Paid };

/** What a collection has done when it goes on elsewhere. */
export type CollectDone = PoolState<Played>;

/** Has the teacher play every training task, `rolloutsPerTask` times each, and keeps what it did, also where it cannot go on. */
export async function collect(input: CollectInput, begun?: CollectDone): Promise<ChildOutcome<CollectedTrajectories, CollectDone>> {
  const { run, plan, teacher: model } = input;
  const slots = slotsOf(`${input.trialPrefix}-w`, input.tasks, plan.warmup.rolloutsPerTask);
  const state = begun ?? null;
  const ledger = ledgerOf(input.allowance, state, costOf);
  // Before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not trained on.
  if (!begun) await briefActivities().checkTasks({ tasks: input.tasks });
  const pool = new TrialPool<Played>({ label: 'warm-up', slots, state, ledger, costOf });
  const halt = await pool.fill(plan.trialConcurrency, async ({ task }, open) => {
    const summary = `warm-up · ${task.id}`;
    const made = await attemptSlot({ run, plan, task, who: 'teacher', model, maxTurns: plan.maxTurns, trains: false, summary }, open);
    if ('again' in made) return made;
    return { done: { slot: open.slot, trial: trajectoryOf(made.trial), paid: addPaid(made.trial) } };
  });
  if (!halt && !pool.complete)
    return continueAsNew<typeof collect>({ ...input, allowance: { ...input.allowance, capUsd: ledger.capUsd } }, pool.state);
  // All this is paid for: it is kept, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    const played = inSlotOrder(pool.done);
    const keep = () => briefActivities().keepTrajectories({ run, trajectories: played.map(({ trial }) => trial) });
    if (halt) {
      if (played.length > 0) await keep();
      return blocked(pool, halt, 'trials', pool.state);
    }
    await briefActivities().checkTasks({ tasks: input.tasks });
    return { kind: 'done', result: { list: await keep(), ...addPaid(...played.map(({ paid }) => paid)) } };
  });
}

const costOf = ({ paid }: Played) => ({ paid, heldUsd: 0 });

/** The part of a trial that a warm-up needs: a split may be large, and all of it goes through one message. */
function trajectoryOf({ trialId, taskId, passed, executed, sampledTokens, spans }: TrialSummary): Trajectory {
  return { trialId, taskId, passed, executed, sampledTokens, spans };
}
