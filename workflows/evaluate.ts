import { CancellationScope, continueAsNew } from '@temporalio/workflow';
import type { BlobRef } from '../core/ids.ts';
import type { RunPlan } from '../core/run/pinned-run.ts';
import type { EvalLabel, EvalResult, HoldoutLabel } from '../core/run/results.ts';
import { inSlotOrder, slotsOf } from '../core/run/slots.ts';
import type { ModelRef, PinnedTask } from '../core/run/trial.ts';
import { type Allowance, blocked, type ChildOutcome, ledgerOf } from './child-outcome.ts';
import { attemptSlot } from './one-trial.ts';
import { briefActivities } from './proxies.ts';
import { type PoolState, type Slotted, TrialPool } from './trial-pool.ts';

export type EvaluateInput = {
  readonly run: BlobRef;
  readonly trialPrefix: string;
  readonly plan: RunPlan;
  readonly label: EvalLabel;
  readonly model: ModelRef;
  readonly tasks: readonly PinnedTask[];
  /** Attempts per task. */
  readonly k: number;
  readonly allowance: Allowance;
};

/** What an evaluation has done when it goes on elsewhere. */
export type EvaluateDone = PoolState<Slotted> & { readonly startedAtMs: number };

/** Letters in trial ids, so that evaluations of one run never share an id; interim ones have the number of their step too. */
const LETTER: Readonly<Record<HoldoutLabel, string>> = { teacher: 't', 'student-before': 'b', 'student-after': 'a' };
const isHoldout = (label: EvalLabel): label is HoldoutLabel => Object.hasOwn(LETTER, label);
const mark = (label: EvalLabel) => (isHoldout(label) ? LETTER[label] : label.replace('interim-', 'i'));

/** Measures one model on some tasks, `k` attempts each. Fails when trials ran and none could be counted. */
export async function evaluate(input: EvaluateInput, begun?: EvaluateDone): Promise<ChildOutcome<EvalResult, EvaluateDone>> {
  const { run, plan, label, model } = input;
  const startedAtMs = begun?.startedAtMs ?? Date.now();
  const slots = slotsOf(`${input.trialPrefix}-e${mark(label)}`, input.tasks, input.k);
  const state = begun ?? null;
  const ledger = ledgerOf(input.allowance, state, costOf);
  // Before, so that nothing is paid for in vain, and after, so that what changed meanwhile is not counted.
  if (!begun) await briefActivities().checkTasks({ tasks: input.tasks });
  const pool = new TrialPool<Slotted>({ label, slots, state, ledger, costOf });
  const who = label === 'teacher' ? 'teacher' : 'student';
  const halt = await pool.fill(plan.trialConcurrency, async ({ task }, open) => {
    const summary = `${label} · ${task.id}`;
    const made = await attemptSlot({ run, plan, task, who, model, maxTurns: plan.maxTurns, trains: false, summary }, open);
    return 'again' in made ? made : { done: { slot: open.slot, trial: made.trial } };
  });
  const done = { ...pool.state, startedAtMs };
  if (halt) return blocked(pool, halt, 'trials', done);
  if (!pool.complete) return continueAsNew<typeof evaluate>({ ...input, allowance: { ...input.allowance, capUsd: ledger.capUsd } }, done);
  // All is paid for: it is counted, whatever happens to the run around it.
  return CancellationScope.nonCancellable(async () => {
    await briefActivities().checkTasks({ tasks: input.tasks });
    const trials = inSlotOrder(pool.done).map(({ trial }) => trial);
    return { kind: 'done', result: await briefActivities().closeEvaluation({ run, label, model, trials, startedAtMs }) };
  });
}

const costOf = ({ trial }: Slotted) => ({ paid: trial, heldUsd: 0 });
