import type { TrialId } from '../../core/ids.ts';
import type { EvalLabel, EvalResult } from '../../core/run/results.ts';
import type { TrialSummary } from '../../core/run/trial.ts';

/** A trial that ran and was graded, unless a test says otherwise. */
export function trialOf(taskId: string, passed: boolean, more: Partial<TrialSummary> = {}): TrialSummary {
  return {
    trialId: `${taskId}-trial` as TrialId,
    taskId,
    spans: null,
    reward: passed ? 1 : 0,
    executed: true,
    passed,
    retry: 'never',
    gradedScore: null,
    exceptionType: null,
    exceptionMessage: null,
    stopReason: 'submitted',
    calls: 2,
    truncatedCalls: 0,
    sampledTokens: 10,
    negLogprobNats: 1,
    scoredTokens: 10,
    maskedTokens: 0,
    overflow: false,
    lengthStops: 0,
    fragments: 1,
    meters: { student_prefill: 100, student_sample: 10 },
    wallMs: 5,
    ...more,
  };
}

/** A trial that says nothing about the model. */
export const brokenTrial = (taskId: string, exceptionMessage: string): TrialSummary =>
  trialOf(taskId, false, { reward: null, executed: false, retry: 'again', exceptionType: 'RuntimeError', exceptionMessage });

/** An evaluation by passed and executed attempts of each task. */
export function evaluated(label: EvalLabel, tasks: Readonly<Record<string, readonly [passed: number, executed: number]>>): EvalResult {
  const perTask = Object.entries(tasks).map(([taskId, [passed, executed]]) => ({ taskId, executed, passed }));
  const executed = perTask.reduce((sum, task) => sum + task.executed, 0);
  const passed = perTask.reduce((sum, task) => sum + task.passed, 0);
  return {
    label,
    source: 'measured',
    model: { kind: 'base', model: 'm', version: 'm' },
    trials: executed,
    executed,
    passed,
    infraFailed: 0,
    solveRate: executed === 0 ? null : passed / executed,
    perTask,
    meters: {},
    usd: 0,
    wallMs: 1,
  };
}
