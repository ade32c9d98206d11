import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { EvalLabel, EvalResult, HoldoutLabel } from '../core/run/results.ts';
import { slotsOf } from '../core/run/slots.ts';
import type { ModelRef, TaskList } from '../core/run/trial.ts';
import { type Allowance, blocked, type ChildOutcome, ledgerOf } from './child-outcome.ts';
import { attemptSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { type PoolState, TrialPool } from './trial-pool.ts';

export type EvaluateInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly label: EvalLabel;
  readonly model: ModelRef;
  readonly tasks: TaskList;
  /** Attempts per task. */
  readonly k: number;
  readonly allowance: Allowance;
};

/** What an evaluation has done when it goes on elsewhere. */
export type EvaluateDone = PoolState & { readonly startedAtMs: number };

/** Letters in trial ids, so that evaluations of one run never share an id; interim ones have the number of their step too. */
const LETTER: Readonly<Record<HoldoutLabel, string>> = { teacher: 't', 'student-before': 'b', 'student-after': 'a' };
const isHoldout = (label: EvalLabel): label is HoldoutLabel => Object.hasOwn(LETTER, label);
const mark = (label: EvalLabel) => (isHoldout(label) ? LETTER[label] : label.replace('interim-', 'i'));

/** The batch of an evaluation: what its trial ids begin with. */
export const batchOfEvaluation = (trialPrefix: string, label: EvalLabel) => `${trialPrefix}-e${mark(label)}`;

/** Measures one model on some tasks, `k` attempts each. Fails when trials ran and none could be counted. */
export async function evaluate(input: EvaluateInput, begun?: EvaluateDone): Promise<ChildOutcome<EvalResult, EvaluateDone>> {
  const { run, plan, label, model } = input;
  const startedAtMs = begun?.startedAtMs ?? Date.now();
  const state = begun ?? null;
  const ledger = ledgerOf(input.allowance, state);
  // Checked before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not counted.
  const tasks = await briefActivities().listTasks({ tasks: input.tasks });
  const slots = slotsOf(batchOfEvaluation(input.trialPrefix, label), tasks, input.k);
  const pool = new TrialPool({ label, run, plan, slots, state, ledger });
  const who = label === 'teacher' ? 'teacher' : 'student';
  const halt = await pool.fill(plan.trialConcurrency, async ({ task }, open) => {
    const summary = `${label} · ${task.id}`;
    const made = await attemptSlot({ run, plan, task, who, model, maxTurns: plan.maxTurns, trains: false, summary }, open);
    return 'again' in made ? made : { done: { slot: open.slot, trial: made.trial, score: null } };
  });
  // All this is paid for: it is kept and counted, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    const kept = await pool.keep();
    const done = { ...kept, startedAtMs };
    if (halt) return blocked(pool, halt, 'trials', done);
    if (!pool.complete) return continueAsNew<typeof evaluate>({ ...input, allowance: { ...input.allowance, capUsd: ledger.capUsd } }, done);
    await briefActivities().checkTasks({ tasks: input.tasks });
    const trials = kept.done.kept;
    return { kind: 'done', result: await briefActivities().closeEvaluation({ run, label, model, trials, startedAtMs }) };
  });
}
