import { allHandlersFinished, CancellationScope, condition, continueAsNew, startChild, workflowInfo } from '@temporalio/workflow';
import { isExhausted } from '../core/measures/billing.ts';
import type { Outcome } from '../core/run/phase.ts';
import type { StepResult } from '../core/run/results.ts';
import { batchOfStep } from '../core/run/slots.ts';
import { stepName } from '../core/run/step-name.ts';
import type { ResumePoint } from '../core/training/checkpoints.ts';
import type { PlanBase } from '../core/training/plan.ts';
import type { distill } from './distill.ts';
import { evaluateInterim, isInterimDue } from './evaluations.ts';
import { training } from './proxies.ts';
import type { Run } from './run.ts';
import { CHILD } from './run-child.ts';
import { paid, withMoney } from './run-money.ts';
import { addRow, moneyOf, resumeOf } from './run-state.ts';
import { publish, refreshSampler, saveCheckpoint } from './saving.ts';
import { type StepDone, step } from './step.ts';

/** Runs the steps that are left. Returns an outcome when the guards end the run, null when all steps are done. */
export async function trainSteps(run: Run): Promise<Outcome | null> {
  const { plan } = run.pinned;
  await openTraining(run);
  if (run.facts.sampler === null) await refreshSampler(run);
  while (run.facts.step < plan.steps) {
    if (workflowInfo().continueAsNewSuggested) await startAnew(run);
    await run.breathe();
    const result = await runStep(run, run.facts.step + 1);
    await bookStep(run, result);
    if (result.kill !== null) {
      run.note(`tripwire: ${result.kill}`);
      run.note(whereToGoOn(resumeOf(run.facts)));
      return 'stopped by tripwire';
    }
    if (result.starved) return 'stopped: nothing to train on';
    const isLast = run.facts.step === plan.steps;
    if (!isLast && run.facts.step % plan.samplerRefreshEvery === 0) await refreshSampler(run);
    // The end of a run saves what the last step left; an evaluation that comes before must not put it at risk.
    if (isLast ? isInterimDue(run) : run.facts.step % plan.saveStateEvery === 0) await saveCheckpoint(run);
    if (isInterimDue(run)) {
      await publish(run);
      await evaluateInterim(run);
    }
  }
  return null;
}

function runStep(run: Run, number: number): Promise<StepResult> {
  const { ref, trialPrefix, plan, runId } = run.pinned;
  const { guard } = run.facts;
  const money = moneyOf(run.facts);
  return withMoney(run, {
    label: `step ${number}`,
    what: `step ${number}`,
    kind: 'training',
    batch: batchOfStep(trialPrefix, number),
    trials: Math.min(plan.tasksPerBatch, run.pinned.train.count) * plan.groupSize,
    start: (allowance, begun?: StepDone) => {
      const input = { run: ref, trialPrefix, plan, step: number, sampler: run.sampler, training: run.training, guard, money, allowance };
      return startChild(step, {
        workflowId: `${runId}.${stepName(number)}`,
        args: begun ? [input, begun] : [input],
        staticSummary: `step ${number}: ${plan.tasksPerBatch} tasks × ${plan.groupSize}`,
        ...CHILD,
      });
    },
  });
}

function baseOf({ pinned: { branch } }: Run): { readonly base?: PlanBase } {
  return branch ? { base: { statePath: branch.statePath, updates: branch.updates } } : {};
}

/** Makes the student, once, and has it kept alive from here on. */
export async function openTraining(run: Run): Promise<void> {
  if (run.facts.training === null) {
    const order = { run: run.pinned.ref, ...baseOf(run) };
    const opened = await paid(run, () => CancellationScope.nonCancellable(() => training(run.pinned.plan).openTraining(order)));
    const { notice, ...at } = opened;
    run.facts.training = at;
    if (notice !== undefined) run.note(notice);
  }
  run.keepAlive.start(run.pinned, run.training.at.generation);
}

/** Everything that was trained is saved, or given up: the service need not hold it any longer. */
export async function closeTraining(run: Run): Promise<void> {
  await run.keepAlive.stop();
  const { training: opened } = run.facts;
  if (opened) await CancellationScope.nonCancellable(() => training(run.pinned.plan).closeTraining({ training: opened }));
}

async function bookStep(run: Run, result: StepResult): Promise<void> {
  run.facts.step = result.row.step;
  run.facts.training = result.training;
  run.facts.guard = result.guard;
  addRow(run.facts, result.row);
  for (const warning of result.row.warnings) run.note(`step ${result.row.step}: ${warning}`);
  if (isExhausted(result.row.cumulative_usd, run.desk.maxUsd)) run.note(`step ${result.row.step}: the run has passed its cap`);
  await run.book(result, { kind: 'training', trialUsd: result.trialUsd });
}

function whereToGoOn({ latest, restoreFrom }: ResumePoint): string {
  if (latest) return `the last weights saved before that are of ${stepName(latest.step)}: ${latest.statePath}`;
  return restoreFrom === null
    ? 'no weights were saved before that: a new run starts from the base model'
    : `the last weights saved before that are those of the warm-up: ${restoreFrom}`;
}

/** Goes on in a new execution with a short history; no child is open here. */
export async function startAnew(run: Run): Promise<never> {
  await run.keepAlive.stop();
  await run.keeping.stop();
  await condition(allHandlersFinished);
  run.bookWallTime();
  // What was imported is among the evaluations by now.
  const pinned = { ...run.pinned, importedBaselines: { teacher: null, student: null } };
  return continueAsNew<typeof distill>(null, { facts: { ...run.facts, pinned }, desk: run.desk.carry() });
}
