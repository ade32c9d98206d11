import { z } from 'zod';
import { NO_USAGE } from '../measures/usage.ts';
import type { EvalResult, HoldoutLabel } from '../run/results.ts';
import type { ModelRef, TrialSummary } from '../run/trial.ts';

const TaskCounts = z.strictObject({ task_id: z.string(), executed: z.int().min(0), passed: z.int().min(0) });

/** Rates are quotients of small counts; the last digits of a written one must not matter. */
const TOLERANCE = 1e-9;

const Fields = z.strictObject({
  name: z.string(),
  /** What was sampled: a model's name or a sampler path. */
  provider_model: z.string(),
  base_model: z.string().nullable().default(null),
  task_ids: z.array(z.string()),
  /** Attempts per task. */
  attempts: z.int().min(1),
  trials: z.int().min(0),
  /** Over executed trials, 0–1; 0 where nothing was executed. */
  solve_rate: z.number().min(0).max(1),
  empty_span_trials: z.int().min(0),
  executed_trials: z.int().min(0),
  infra_failed_trials: z.int().min(0).default(0),
  /** Executed and passed trials by task, which paired evidence needs. Reports of other programs have none. */
  per_task: z.array(TaskCounts).optional(),
});

/** A baseline evaluation as a run records it and another run may import it. Keys as in the file. */
export const BaselineReport = Fields.superRefine((report, context) => {
  for (const problem of contradictions(report)) context.addIssue({ code: 'custom', path: ['per_task'], message: problem });
});
export type BaselineReport = z.infer<typeof BaselineReport>;

/** Where the counts by task say something else than the report's own sums. */
function contradictions({ per_task: counts, task_ids, attempts, executed_trials, solve_rate }: z.infer<typeof Fields>): string[] {
  if (counts === undefined) return [];
  const named = new Set(task_ids);
  const ids = new Set(counts.map(({ task_id }) => task_id));
  const executed = counts.reduce((sum, task) => sum + task.executed, 0);
  const passed = counts.reduce((sum, task) => sum + task.passed, 0);
  const rate = executed === 0 ? 0 : passed / executed;
  return [
    ids.size < counts.length ? 'names a task twice' : null,
    counts.some(({ task_id }) => !named.has(task_id)) ? 'names a task that is not in task_ids' : null,
    task_ids.some((id) => !ids.has(id)) ? 'leaves out a task of task_ids' : null,
    counts.some((task) => task.executed > attempts) ? `has more executed trials of a task than its ${attempts} attempts` : null,
    counts.some((task) => task.passed > task.executed) ? 'has more passed than executed trials of a task' : null,
    executed === executed_trials ? null : `adds up to ${executed} executed trials; executed_trials is ${executed_trials}`,
    Math.abs(rate - solve_rate) <= TOLERANCE ? null : `comes to a solve rate of ${rate}; solve_rate is ${solve_rate}`,
  ].filter((problem) => problem !== null);
}

export type MeasuredBaseline = {
  readonly which: 'teacher' | 'student';
  readonly evaluation: EvalResult;
  readonly taskIds: readonly string[];
  readonly attempts: number;
  readonly trials: readonly Pick<TrialSummary, 'spans'>[];
};

/** The report of a baseline that was measured, for another run to import. */
export function baselineReport({ which, evaluation, taskIds, attempts, trials }: MeasuredBaseline): BaselineReport {
  const { model, executed, infraFailed, solveRate, perTask } = evaluation;
  return {
    name: `baseline-${which}`,
    provider_model: model.kind === 'sampler' ? model.path : model.model,
    base_model: model.model,
    task_ids: [...taskIds],
    attempts,
    trials: trials.length,
    solve_rate: solveRate ?? 0,
    empty_span_trials: trials.filter(({ spans }) => spans === null).length,
    executed_trials: executed,
    infra_failed_trials: infraFailed,
    per_task: taskIds.map((id) => {
      const { executed = 0, passed = 0 } = perTask.find(({ taskId }) => taskId === id) ?? {};
      return { task_id: id, executed, passed };
    }),
  };
}

/** An imported baseline as the evaluation that it stands for. It costs this run nothing. */
export function importedEvaluation(label: HoldoutLabel, model: ModelRef, report: BaselineReport): EvalResult {
  const executed = report.executed_trials;
  return {
    label,
    source: 'imported',
    model,
    trials: report.trials,
    executed,
    passed: Math.round(report.solve_rate * executed),
    infraFailed: report.infra_failed_trials,
    solveRate: executed === 0 ? null : report.solve_rate,
    perTask: (report.per_task ?? [])
      .filter((task) => task.executed > 0)
      .map((task) => ({ taskId: task.task_id, executed: task.executed, passed: task.passed })),
    ...NO_USAGE,
    usd: 0,
    trialUsd: null,
    wallMs: 0,
  };
}
