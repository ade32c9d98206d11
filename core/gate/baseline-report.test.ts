import { describe, expect, it } from 'vitest';
import { baselineReportOf, evaluationOf } from '../run/testing/facts.ts';
import { BaselineReport, baselineReport, importedEvaluation } from './baseline-report.ts';
import { BaselineError, chooseBaseline } from './baselines.ts';

const model = { kind: 'base', model: 'T', version: 'T' } as const;
const evaluation = evaluationOf({
  model,
  executed: 5,
  passed: 4,
  infraFailed: 1,
  perTask: [
    { taskId: 'h1', executed: 3, passed: 3 },
    { taskId: 'h2', executed: 2, passed: 1 },
  ],
  meters: { teacher_sample: 7 },
  usd: 0.5,
});
const report = baselineReport({
  which: 'teacher',
  evaluation,
  taskIds: ['h1', 'h2'],
  attempts: 3,
  trials: [{ spans: null }, ...Array.from({ length: 5 }, () => ({ spans: 'sha256:x' as never }))],
});
const wanted = { which: 'teacher', attempts: 3, holdout: ['h1', 'h2'], providerModel: 'T', baseModel: 'T', recorded: null } as const;
const choose = (given: object) => chooseBaseline({ ...wanted, importText: JSON.stringify(given) });

describe('a measured baseline', () => {
  it('is a report that states what was sampled, how often, and what came of it', () => {
    expect(report).toMatchObject({ name: 'baseline-teacher', provider_model: 'T', base_model: 'T', task_ids: ['h1', 'h2'], attempts: 3 });
    expect(report).toMatchObject({ trials: 6, executed_trials: 5, infra_failed_trials: 1, empty_span_trials: 1, solve_rate: 0.8 });
  });

  it('of a checkpoint names the checkpoint and its base model', () => {
    const checkpoint = { kind: 'sampler', model: 'T', path: 'tinker://c' as never, version: 'tinker://c' } as const;
    const given = { which: 'teacher', evaluation: { ...evaluation, model: checkpoint }, taskIds: ['h1'], attempts: 1, trials: [] } as const;
    expect(baselineReport(given)).toMatchObject({ provider_model: 'tinker://c', base_model: 'T' });
  });

  it('comes back as the same counts when it is imported, and costs nothing again', () => {
    const choice = choose(report);
    if (choice.source !== 'imported') throw new Error('it was to be imported');
    expect(importedEvaluation('teacher', model, choice.report)).toEqual({
      ...evaluation,
      source: 'imported',
      meters: {},
      usd: 0,
      wallMs: 0,
    });
  });
});

it('a report without counts by task is an evaluation without them, with its passed trials from the rate', () => {
  const { per_task: _, ...plain } = report;
  expect(importedEvaluation('teacher', model, BaselineReport.parse(plain))).toMatchObject({ perTask: [], passed: 4, solveRate: 0.8 });
});

it('what reports of other programs leave out has a default', () => {
  const { base_model: _, infra_failed_trials: __, ...plain } = baselineReportOf({ base_model: 'T', infra_failed_trials: 1 });
  expect(BaselineReport.parse(plain)).toEqual({ ...plain, base_model: null, infra_failed_trials: 0 });
});

describe('counts by task that say something else than the report', () => {
  const [first, second] = report.per_task ?? [];
  if (!first || !second) throw new Error('the report has two tasks');
  it.each([
    ['fewer executed trials', { per_task: [first] }, /adds up to 3 executed trials; executed_trials is 5/],
    ['another rate', { solve_rate: 0.6 }, /comes to a solve rate of 0\.8; solve_rate is 0\.6/],
    ['a task twice', { per_task: [first, { ...second, task_id: 'h1' }] }, /names a task twice/],
    ['another task', { per_task: [first, { ...second, task_id: 'x' }] }, /a task that is not in task_ids/],
    [
      'more passed than executed',
      {
        per_task: [
          { ...first, passed: 2 },
          { ...second, executed: 2, passed: 3 },
        ],
      },
      /more passed than executed/,
    ],
    ['an unknown key', { per_task: [{ ...first, failed: 0 }, second] }, /failed/],
    ['negative counts', { per_task: [{ ...first, passed: -1 }, second] }, /passed/],
  ])('with %s are no report', (_, change, message) => {
    const import_ = () => choose({ ...report, ...change });
    expect(import_).toThrow(BaselineError);
    expect(import_).toThrow(message);
    expect(import_).toThrow(expect.objectContaining({ code: 'import_invalid_report' }));
  });

  it('the unchanged ones are fine', () => expect(choose(report)).toMatchObject({ source: 'imported' }));
});

it.each([
  ['leaves out a task', { task_ids: ['x', 'y'], per_task: [{ task_id: 'x', executed: 6, passed: 3 }], attempts: 6 }, /leaves out a task/],
  [
    'has more trials of a task than attempts',
    { task_ids: ['x'], per_task: [{ task_id: 'x', executed: 6, passed: 3 }], attempts: 3 },
    /more executed trials of a task than its 3 attempts/,
  ],
])('a report whose counts by task %s is refused', (_, change, problem) => {
  const parsed = BaselineReport.safeParse({ ...baselineReportOf(), ...change });
  expect(parsed.error?.message).toMatch(problem);
});
