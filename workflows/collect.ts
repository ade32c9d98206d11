import { continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import { slotsOf } from '../core/run/slots.ts';
import type { ModelRef, TaskList } from '../core/run/trial.ts';
import type { CollectedTrajectories } from '../core/run/warm-up.ts';
import type { CarriedSlots } from './filled-slots.ts';
import { runSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { TrialPool } from './trial-pool.ts';

export type CollectInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly teacher: ModelRef;
  readonly tasks: TaskList;
};

type Carried = { readonly done: CarriedSlots };

/** Has the teacher play every training task, `rolloutsPerTask` times each, and keeps what it did. */
export async function collect(input: CollectInput, carried?: Carried): Promise<CollectedTrajectories> {
  const { run, plan, teacher: model } = input;
  // Checked before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not trained on.
  const tasks = await briefActivities().listTasks({ tasks: input.tasks });
  const slots = slotsOf(`${input.trialPrefix}-w`, tasks, plan.warmup.rolloutsPerTask);
  const pool = new TrialPool({ label: 'warm-up', run, slots, carried: carried?.done });
  await pool.fill(plan.trialConcurrency, async ({ id: slot, task }) => {
    const summary = `warm-up · ${task.id}`;
    const trial = await runSlot({ run, plan, slot, task, who: 'teacher', model, maxTurns: plan.maxTurns, summary });
    return { slot, trial, score: null };
  });
  if (!pool.complete) return continueAsNew<typeof collect>(input, { done: await pool.keep() });
  await briefActivities().checkTasks({ tasks: input.tasks });
  const { kept: trials } = await pool.keep();
  return briefActivities().keepTrajectories({ run, trials });
}
