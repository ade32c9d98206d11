import { continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import { addUsage, type Usage } from '../core/measures/usage.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import { inSlotOrder, slotsOf } from '../core/run/slots.ts';
import type { ModelRef, PinnedTask, TrialSummary } from '../core/run/trial.ts';
import type { CollectedTrajectories, Trajectory } from '../core/run/warm-up.ts';
import { runSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { TrialPool } from './trial-pool.ts';

export type CollectInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly teacher: ModelRef;
  readonly tasks: readonly PinnedTask[];
};

type Played = { readonly slot: string; readonly trial: Trajectory; readonly usage: Usage };
type Carried = { readonly done: readonly Played[] };

/** Has the teacher play every training task, `rolloutsPerTask` times each, and keeps what it did. */
export async function collect(input: CollectInput, carried?: Carried): Promise<CollectedTrajectories> {
  const { run, plan, teacher: model } = input;
  const slots = slotsOf(`${input.trialPrefix}-w`, input.tasks, plan.warmup.rolloutsPerTask);
  // Before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not trained on.
  if (!carried) await briefActivities().checkTasks({ tasks: input.tasks });
  const pool = new TrialPool<Played>('warm-up', slots, carried?.done ?? []);
  await pool.fill(plan.trialConcurrency, async ({ id: slot, task }) => {
    const summary = `warm-up · ${task.id}`;
    const trial = await runSlot({ run, plan, slot, task, who: 'teacher', model, maxTurns: plan.maxTurns, summary });
    return { slot, trial: trajectoryOf(trial), usage: addUsage(trial) };
  });
  if (!pool.complete) return continueAsNew<typeof collect>(input, { done: pool.done });
  await briefActivities().checkTasks({ tasks: input.tasks });
  const played = inSlotOrder(pool.done);
  const list = await briefActivities().keepTrajectories({ run, trajectories: played.map(({ trial }) => trial) });
  return { list, ...addUsage(...played.map(({ usage }) => usage)) };
}

/** The part of a trial that a warm-up needs: a split may be large, and all of it goes through one message. */
function trajectoryOf({ trialId, taskId, passed, executed, sampledTokens, spans }: TrialSummary): Trajectory {
  return { trialId, taskId, passed, executed, sampledTokens, spans };
}
