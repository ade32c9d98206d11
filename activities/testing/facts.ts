import type { TrialId } from '../../core/ids.ts';
import type { EvalLabel, EvalResult } from '../../core/run/results.ts';
import { evaluationOf, trialOf } from '../../core/run/testing/facts.ts';
import type { TrialSummary } from '../../core/run/trial.ts';

/** An attempt at a task that ran and was graded, unless a test says otherwise. */
export function attempt(taskId: string, passed: boolean, more: Partial<TrialSummary> = {}): TrialSummary {
  const meters = { student_prefill: 100, student_sample: 10 };
  return trialOf({ trialId: `${taskId}-trial` as TrialId, taskId, reward: passed ? 1 : 0, passed, meters, usd: 5e-6, ...more });
}

/** An attempt that says nothing about the model. */
export const brokenAttempt = (taskId: string, exceptionMessage: string): TrialSummary =>
  attempt(taskId, false, { reward: null, executed: false, retry: 'again', exceptionType: 'RuntimeError', exceptionMessage });

/** An evaluation by passed and executed attempts of each task. */
export function evaluated(label: EvalLabel, tasks: Readonly<Record<string, readonly [passed: number, executed: number]>>): EvalResult {
  const perTask = Object.entries(tasks).map(([taskId, [passed, executed]]) => ({ taskId, executed, passed }));
  const executed = perTask.reduce((sum, task) => sum + task.executed, 0);
  const passed = perTask.reduce((sum, task) => sum + task.passed, 0);
  return evaluationOf({ label, executed, passed, perTask });
}
