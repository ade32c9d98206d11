import { startChild } from '@temporalio/workflow';
import { withoutLostList } from '../core/measures/usage.ts';
import type { EvalLabel, EvalResult, HoldoutLabel } from '../core/run/results.ts';
import { interimLabel } from '../core/run/step-name.ts';
import type { ModelRef, TaskList } from '../core/run/trial.ts';
import { batchOfEvaluation, type EvaluateDone, evaluate } from './evaluate.ts';
import { briefActivities } from './proxies.ts';
import type { Run } from './run.ts';
import { CHILD } from './run-child.ts';
import { withMoney } from './run-money.ts';

/** Interim evaluations kept in the workflow; each is in the run folder as `eval-interim-NNNN.json`. */
const INTERIM_KEPT = 20;

/** Measures a model on the held-out tasks, `gate.k` attempts each. `modelOf` is asked after all waits: weights may have to be published again. */
export async function evaluateHoldout(run: Run, label: HoldoutLabel, modelOf: () => ModelRef): Promise<void> {
  const { holdout: tasks, plan } = run.pinned;
  const result = await measure(run, { label, modelOf, tasks, k: plan.gateK, kind: 'held-out' });
  run.facts.evaluations = [...run.facts.evaluations, withoutLostList(result)];
  await run.book(result, { kind: kindOf(label), trialUsd: result.trialUsd });
}

/** Whether the step that was just finished is one of those after which the student is looked at. */
export function isInterimDue({ pinned, facts }: Run): boolean {
  const { every } = pinned.plan.interim;
  return every > 0 && facts.step % every === 0;
}

/** Measures the weights that were published last, those of the last finished step, on a few training tasks, the same ones every time. */
export async function evaluateInterim(run: Run): Promise<void> {
  const tasks = run.facts.interimTasks ?? (await briefActivities().drawInterimTasks({ run: run.pinned.ref }));
  run.facts.interimTasks = tasks;
  const { step } = run.facts;
  const modelOf = () => run.published;
  const result = await measure(run, { label: interimLabel(step), modelOf, tasks, k: run.pinned.plan.interim.k, kind: 'training' });
  run.keeping.measured(step, result.solveRate);
  // Their counts by task and lost calls are in the run folder; all of them together would be too much for one message.
  run.facts.interim = [...run.facts.interim, { ...withoutLostList(result), perTask: [] }].slice(-INTERIM_KEPT);
  await run.book(result, { kind: 'student', trialUsd: result.trialUsd });
}

const kindOf = (label: EvalLabel) => (label === 'teacher' ? 'teacher' : 'student');

type Measurement = {
  readonly label: EvalLabel;
  readonly modelOf: () => ModelRef;
  readonly tasks: TaskList;
  /** Attempts per task. */
  readonly k: number;
  readonly kind: 'held-out' | 'training';
};

async function measure(run: Run, { label, modelOf, tasks, k, kind }: Measurement): Promise<EvalResult> {
  const { ref, trialPrefix, plan, runId } = run.pinned;
  return withMoney(run, {
    label,
    what: `the ${label} evaluation`,
    kind: kindOf(label),
    batch: batchOfEvaluation(trialPrefix, label),
    trials: tasks.count * k,
    start: (allowance, begun?: EvaluateDone) => {
      const input = { run: ref, trialPrefix, plan, label, model: modelOf(), tasks, k, allowance };
      return startChild(evaluate, {
        workflowId: `${runId}.eval-${label}`,
        args: begun ? [input, begun] : [input],
        staticSummary: `${label} on ${tasks.count} ${kind} tasks × ${k}`,
        ...CHILD,
      });
    },
  });
}
