import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { BaselineReport } from '../../core/gate/baseline-report.ts';
import type { EvalResult } from '../../core/run/results.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { runDirOf } from '../support/product.ts';
import { KeysSetting, type Observed, quickTasks } from './setting.ts';

/** A run that is looked at between steps, and one with a warm-up that starts from the baselines which the first one measured. */
const SIZE = {
  'rollout.max_turns': 2,
  'train.steps': 3,
  'train.tasks_per_batch': 2,
  'train.group_size': 2,
  'train.learning_rate': 0.01,
  'train.sampler_refresh_every': 3,
  'gate.k': 2,
};
const WARM_UP = { 'warmup.steps': 1, 'warmup.rollouts_per_task': 1, 'warmup.keep': 'all' };
const TASKS = { taskIds: quickTasks('train', /^copy-/, 4), holdoutTaskIds: quickTasks('holdout', /^delete-\w{3}-\w{6}$/, 3) };
const FIRST = 'keys-evaluations';

let setting: KeysSetting;
let first: Observed;
let second: Observed;
beforeAll(async () => {
  setting = await KeysSetting.make();
  first = await setting.run({ runId: FIRST, keys: { ...SIZE, 'eval.every': 1, 'eval.tasks': 3, 'eval.k': 2 }, ...TASKS });
  const from = { 'eval.student_baseline_from': `${runDirOf(FIRST)}/baseline-student.json`, 'eval.defer_baselines': true };
  second = await setting.run({ runId: 'keys-deferred', keys: { ...SIZE, 'train.steps': 1, ...WARM_UP, ...from }, ...TASKS });
}, 300_000);
afterAll(() => setting?.[Symbol.asyncDispose](), 60_000);

const counts = ({ trials, executed, passed, perTask }: EvalResult) => ({ trials, executed, passed, perTask });
const labels = ({ result }: Observed) => result.evaluations.map(({ label, source }) => `${label} ${source}`);

describe('eval', () => {
  it('every, tasks, k: after each step its own weights play the same training tasks', () => {
    const { interim } = first.status;
    expect(interim.map(({ label, model, trials }) => [label, model.version, trials])).toEqual([
      ['interim-0001', 'step-0001', 3 * 2],
      ['interim-0002', 'step-0002', 3 * 2],
      ['interim-0003', 'step-0003', 3 * 2],
    ]);
    const written = interim.map(
      ({ label }) => JSON.parse(first.read(`eval-${label}.json`)) as EvalResult & { outcomes: { taskId: string }[] },
    );
    const tasks = written.map(({ outcomes }) => [...new Set(outcomes.map(({ taskId }) => taskId))].sort());
    expect(tasks[0]).toHaveLength(3);
    expect(TASKS.taskIds).toEqual(expect.arrayContaining(tasks[0] ?? []));
    expect(tasks[1]).toEqual(tasks[0]);
    expect(tasks[2]).toEqual(tasks[0]);
    const meters = interim.map(({ meters }) => meters.student_sample ?? 0);
    expect(Math.min(...meters)).toBeGreaterThan(0);
    // What steps sample from is refreshed every third step only.
    expect(first.rows.map(({ sampler }) => sampler)).toEqual(['step-0000', 'step-0000', 'step-0000']);
  });

  it('student_baseline_from, defer_baselines: the student is not measured again, the teacher only after training', () => {
    expect(labels(first)).toEqual(['teacher measured', 'student-before measured', 'student-after measured']);
    expect(labels(second)).toEqual(['student-before imported', 'student-after measured', 'teacher measured']);
    const [before] = second.result.evaluations;
    const [, original] = first.result.evaluations;
    expect(before && counts(before)).toEqual(original && counts(original));
    expect(second.result.verdict).toMatchObject({ before: original?.solveRate, improvement: { n: 3 } });
    expect(second.files).not.toContain('eval-student-before.json');
    expect(second.status.notices).toContainEqual(expect.stringContaining('eval.defer_baselines'));
  });

  it('both baselines are left as reports', () => {
    for (const which of ['teacher', 'student'] as const)
      expect(BaselineReport.parse(JSON.parse(first.read(`baseline-${which}.json`)))).toMatchObject({ attempts: 2, trials: 6 });
  });

  it('a baseline of too few attempts, and one of the other model, are refused by name', async () => {
    const path = `${runDirOf(FIRST)}/baseline-student.json`;
    const few = { 'gate.k': 3, 'eval.student_baseline_from': path };
    expect(await setting.failure({ runId: 'keys-few', keys: few, ...TASKS })).toMatchObject({
      type: 'BadRunInput',
      message: expect.stringMatching(/^eval\.student_baseline_from: .*import_too_few_attempts/),
    });
    const other = { 'gate.k': 2, 'eval.teacher_baseline_from': path };
    expect(await setting.failure({ runId: 'keys-other', keys: other, ...TASKS })).toMatchObject({
      type: 'BadRunInput',
      message: expect.stringMatching(/^eval\.teacher_baseline_from: .*import_other_teacher/),
    });
  });
});

it('the files of a run folder are those that the reference of the run folder names', () => {
  const page = readFileSync(join(PROJECT_ROOT, 'docs/metrics.md'), 'utf8');
  const [, files = ''] = page.split('## The other files of a run folder');
  const named = [...files.matchAll(/^\| `([\w.-]+)` *\| *\S[^|]*\| *\S/gm)].map(([, file = '']) => file);
  const forms = named.map((name) => new RegExp(`^${name.replaceAll('.', '\\.').replace('NNNN', '\\d{4}')}$`));
  const left = [...new Set([...first.files, ...second.files])];
  expect(left.filter((file) => !forms.some((form) => form.test(file)))).toEqual([]);
  expect(named.filter((_, index) => !left.some((file) => forms[index]?.test(file)))).toEqual([]);
});
