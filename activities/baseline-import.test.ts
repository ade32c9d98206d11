import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BaselineReport } from '../core/gate/baseline-report.ts';
import { baselineReportOf, importedOf } from '../core/run/testing/facts.ts';
import { sha256 } from './digest.ts';
import { CONFIG, failureOf, Project } from './testing/project.ts';

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

const baselineOf = (which: 'teacher' | 'student') =>
  baselineReportOf({
    name: `baseline-${which}`,
    provider_model: `stillroom/tiny-${which}`,
    base_model: `stillroom/tiny-${which}`,
    task_ids: ['y', 'x'],
    per_task: [
      { task_id: 'x', executed: 3, passed: 3 },
      { task_id: 'y', executed: 3, passed: 0 },
    ],
  });
const [TEACHER, STUDENT] = [baselineOf('teacher'), baselineOf('student')];
const BOTH = '[eval]\nteacher_baseline_from = "old/t.json"\nstudent_baseline_from = "old/s.json"\n';

async function resolve(teacher: object, student: object, more = '') {
  await project.file('old/t.json', JSON.stringify(teacher));
  await project.file('old/s.json', JSON.stringify(student));
  return project.resolve({ config: `${CONFIG}${BOTH}${more}` });
}

describe('imported baselines', () => {
  it('are pinned whole, with the hash of their files, and stay what they were when the files change', async () => {
    const pinned = await resolve(TEACHER, STUDENT);
    expect(pinned.importedBaselines).toEqual({
      teacher: importedOf('teacher', 'stillroom/tiny-teacher'),
      student: importedOf('student-before', 'stillroom/tiny-student'),
    });
    expect(pinned.fileHashes).toMatchObject({
      'eval.teacher_baseline_from': sha256(JSON.stringify(TEACHER)),
      'eval.student_baseline_from': sha256(JSON.stringify(STUDENT)),
    });
    expect(pinned.warnings).toEqual([]);
    await project.file('old/t.json', '{}');
    expect((await project.records.load(pinned.ref)).importedBaselines).toEqual(pinned.importedBaselines);
  });

  it('are none where none is named', async () => {
    expect((await project.resolve()).importedBaselines).toEqual({ teacher: null, student: null });
  });

  it('of a checkpoint must name the checkpoint', async () => {
    const config = CONFIG.replace('[teacher]', '[teacher]\ncheckpoint = "tinker://c"');
    const from = '[eval]\nteacher_baseline_from = "t.json"\n';
    await project.file('t.json', JSON.stringify(TEACHER));
    expect((await failureOf(project.resolve({ config: `${config}${from}` }))).message).toMatch(/import_other_teacher/);
    await project.file('t.json', JSON.stringify({ ...TEACHER, provider_model: 'tinker://c' }));
    expect((await project.resolve({ config: `${config}${from}` })).importedBaselines.teacher?.model).toEqual({
      kind: 'sampler',
      model: 'stillroom/tiny-teacher',
      path: 'tinker://c',
      version: 'tinker://c',
    });
  });

  it('without counts by task warn of what the gate will not know', async () => {
    const without = ({ per_task: _, ...report }: BaselineReport) => report;
    const { warnings } = await resolve(without(TEACHER), without(STUDENT), '[gate]\nconfidence = 0.95\n');
    expect(warnings.filter((warning) => warning.startsWith('eval.'))).toEqual([
      expect.stringMatching(/^eval\.teacher_baseline_from has no per_task/),
      expect.stringMatching(/^eval\.student_baseline_from has no per_task.*gate\.confidence = 0\.95 .*insufficient_evidence$/),
    ]);
  });
});

describe('a run cannot start from', () => {
  it.each<[string, Partial<BaselineReport> & Record<string, unknown>, RegExp]>([
    ['other tasks', { task_ids: ['x', 'a'], per_task: undefined }, /other tasks than the holdout \(import_task_set\)/],
    ['too few attempts', { attempts: 2, per_task: undefined }, /2 attempts a task; 3 are asked for \(import_too_few_attempts\)/],
    ['another base model', { base_model: 'other' }, /\(import_other_base_model\)/],
    ['nothing executed', { executed_trials: 0, solve_rate: 0, per_task: undefined }, /\(import_null_measurement\)/],
    ['an unknown key', { color: 'red' }, /color.*\(import_invalid_report\)/s],
    ['sums that do not agree', { executed_trials: 5 }, /adds up to 6 executed trials.*\(import_invalid_report\)/s],
  ])('a baseline with %s', async (_, change, message) => {
    const before = await project.names('.');
    const failure = await failureOf(resolve(TEACHER, { ...STUDENT, ...change }));
    expect(failure).toMatchObject({ type: 'BadRunInput', nonRetryable: true });
    expect(failure.message).toMatch(/^eval\.student_baseline_from: old\/s\.json: /);
    expect(failure.message).toMatch(message);
    expect(await project.names('.')).toEqual([...before, 'old'].sort());
  });

  it.each([
    ['that is not there', 'gone.json', /^eval\.teacher_baseline_from: gone\.json: .*not there \(import_missing_file\)$/],
    ['outside of the project', '../t.json', /^eval\.teacher_baseline_from: \.\.\/t\.json is not below the project root/],
    ['that is a folder', 'tasks', /^eval\.teacher_baseline_from: tasks is not a file$/],
    ['that is no JSON', 'run.toml', /^eval\.teacher_baseline_from: run\.toml: .*not JSON.*\(import_invalid_report\)$/s],
  ])('a baseline %s', async (_, path, message) => {
    const config = `${CONFIG}[eval]\nteacher_baseline_from = ${JSON.stringify(path)}\n`;
    expect((await failureOf(project.resolve({ config }))).message).toMatch(message);
  });

  it('two baselines that do not fit, each named', async () => {
    const { message } = await failureOf(resolve({ ...TEACHER, provider_model: 'other' }, { ...STUDENT, base_model: null }));
    expect(message).toMatch(
      /^config: eval\.teacher_baseline_from: .*\(import_other_teacher\)\neval\.student_baseline_from: .*\(import_no_base_model\)$/,
    );
  });

  it('a student that is not imported where baselines are deferred', async () => {
    const { message } = await failureOf(project.resolve({ config: `${CONFIG}[eval]\ndefer_baselines = true\n` }));
    expect(message).toMatch(/defer_baselines needs student_baseline_from/);
  });
});
