import { continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { EvalLabel, EvalResult, HoldoutLabel } from '../core/run/results.ts';
import { slotsOf } from '../core/run/slots.ts';
import type { ModelRef, TaskList } from '../core/run/trial.ts';
import type { CarriedSlots } from './filled-slots.ts';
import { runSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { TrialPool } from './trial-pool.ts';

export type EvaluateInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly label: EvalLabel;
  readonly model: ModelRef;
  readonly tasks: TaskList;
  /** Attempts per task. */
  readonly k: number;
};

type Carried = { readonly done: CarriedSlots; readonly startedAtMs: number };

/** Letters in trial ids, so that evaluations of one run never share an id; interim ones have the number of their step too. */
const LETTER: Readonly<Record<HoldoutLabel, string>> = { teacher: 't', 'student-before': 'b', 'student-after': 'a' };
const isHoldout = (label: EvalLabel): label is HoldoutLabel => Object.hasOwn(LETTER, label);
const mark = (label: EvalLabel) => (isHoldout(label) ? LETTER[label] : label.replace('interim-', 'i'));

/** Measures one model on some tasks, `k` attempts each. Fails when trials ran and none could be counted. */
export async function evaluate(input: EvaluateInput, carried?: Carried): Promise<EvalResult> {
  const { run, plan, label, model } = input;
  const startedAtMs = carried?.startedAtMs ?? Date.now();
  // Checked before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not counted.
  const tasks = await briefActivities().listTasks({ tasks: input.tasks });
  const slots = slotsOf(`${input.trialPrefix}-e${mark(label)}`, tasks, input.k);
  const pool = new TrialPool({ label, run, slots, carried: carried?.done });
  await pool.fill(plan.trialConcurrency, async ({ id: slot, task }) => {
    const who = label === 'teacher' ? 'teacher' : 'student';
    const summary = `${label} · ${task.id}`;
    return { slot, trial: await runSlot({ run, plan, slot, task, who, model, maxTurns: plan.maxTurns, summary }), score: null };
  });
  if (!pool.complete) return continueAsNew<typeof evaluate>(input, { done: await pool.keep(), startedAtMs });
  await briefActivities().checkTasks({ tasks: input.tasks });
  const { kept: trials } = await pool.keep();
  return briefActivities().closeEvaluation({ run, label, model, trials, startedAtMs });
}
