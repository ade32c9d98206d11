import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { BlobRef } from '../core/ids.ts';
import type { EvalResult } from '../core/run/results.ts';
import { GateBook } from '../services/stores/gate-book.ts';
import { createEvaluationActivities } from './evaluation.ts';
import { attempt, brokenAttempt, evaluated } from './testing/facts.ts';
import { CONFIG, failureOf, Project } from './testing/project.ts';

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

function activities() {
  const gates = new GateBook(project.objects);
  const countGate = (protocolHash: string, runId: string) => gates.note(protocolHash, runId);
  const { records, blobs, objects, folderOf } = project;
  return createEvaluationActivities({ records, blobs, objects, folderOf, countGate });
}

const pinned = async (runId: string, more = '') =>
  (await project.resolve({ config: `${CONFIG}${more}` }, { runId, executionId: `e-${runId}` })).ref;
const model = { kind: 'base', model: 'm', version: 'm' } as const;
const written = async (path: string) => JSON.parse(await readFile(join(project.root, path), 'utf8')) as unknown;

describe('an evaluation', () => {
  it('counts attempts by task, over executed trials only, and keeps its trials in the run folder', async () => {
    const trials = [
      attempt('x', true),
      attempt('x', false),
      brokenAttempt('x', 'no sandbox'),
      attempt('y', true),
      attempt('y', true, { reward: 1, exceptionType: 'AgentTimeoutError', exceptionMessage: 'late' }),
      brokenAttempt('z', 'no grader'),
    ];
    const run = await pinned('r');
    const result = await activities().closeEvaluation({
      run,
      label: 'student-after',
      model,
      trials: await project.kept(run, trials),
      startedAtMs: Date.now(),
    });
    expect(result).toMatchObject({ trials: 6, executed: 4, passed: 3, infraFailed: 2, solveRate: 0.75, label: 'student-after', model });
    expect(result.perTask).toEqual([
      { taskId: 'x', executed: 2, passed: 1 },
      { taskId: 'y', executed: 2, passed: 2 },
    ]);
    expect(result.meters).toEqual({ student_prefill: 600, student_sample: 60 });
    expect(result.usd).toBeCloseTo((60 * 0.5) / 1e6, 12); // student_prefill has no price
    expect(await written('runs/r/eval-student-after.json')).toEqual({ ...result, outcomes: trials });
  });

  it.each([
    ['teacher', 'baseline-teacher.json', 'teacher_baseline_from'],
    ['student-before', 'baseline-student.json', 'student_baseline_from'],
  ] as const)('that is a baseline (%s) leaves a report that another run can import', async (label, file, key) => {
    const name = `stillroom/tiny-${label === 'teacher' ? 'teacher' : 'student'}`;
    const trials = [attempt('x', true), attempt('x', false), brokenAttempt('y', 'no sandbox')];
    const run = await pinned('r', '[gate]\nk = 2\n');
    const model = { kind: 'base', model: name, version: name } as const;
    const measured = await activities().closeEvaluation({ run, label, model, trials: await project.kept(run, trials), startedAtMs: 0 });
    const from = await project.resolve({ config: `${CONFIG}[gate]\nk = 2\n[eval]\n${key} = "runs/r/${file}"\n` }, { runId: 'next' });
    const imported = from.importedBaselines[label === 'teacher' ? 'teacher' : 'student'];
    expect(imported).toEqual({ ...measured, source: 'imported', meters: {}, usd: 0, trialUsd: null, wallMs: 0 });
    const report = await written(`runs/r/${file}`);
    expect(report).toMatchObject({
      provider_model: name,
      task_ids: ['x', 'y'],
      attempts: 2,
      trials: 3,
      executed_trials: 2,
      solve_rate: 0.5,
    });
    const per_task = [
      { task_id: 'x', executed: 2, passed: 1 },
      { task_id: 'y', executed: 0, passed: 0 },
    ];
    expect(report).toMatchObject({ empty_span_trials: 3, infra_failed_trials: 1, per_task });
  });

  it('of a step in between leaves no baseline', async () => {
    const run = await pinned('r');
    await activities().closeEvaluation({
      run,
      label: 'interim-0004',
      model,
      trials: await project.kept(run, [attempt('a', true)]),
      startedAtMs: 0,
    });
    expect(await project.names('runs/r')).toEqual(['eval-interim-0004.json', 'run.json']);
  });

  it('of which nothing was executed fails by name, for good, with the first reason', async () => {
    const trials = [brokenAttempt('x', 'no sandbox'), brokenAttempt('y', 'no grader')];
    const run = await pinned('r');
    const kept = await project.kept(run, trials);
    const closing = activities().closeEvaluation({ run, label: 'teacher', model, trials: kept, startedAtMs: 0 });
    expect(await failureOf(closing)).toEqual({
      type: 'NothingExecuted',
      nonRetryable: true,
      message:
        'teacher: none of the 2 trials was executed; look at the infrastructure failures before anything is compared. First failure: no sandbox',
    });
    expect(await project.names('runs/r')).toEqual(['run.json']);
  });
});

const EIGHT = ['p', 'q', 'r', 's', 't', 'u', 'v', 'w'];
const all = (label: EvalResult['label'], passed: number) =>
  evaluated(label, Object.fromEntries(EIGHT.map((task) => [task, [passed, 4] as const])));

describe('the teacher’s lead', () => {
  it('is taken task by task over tasks measured on both sides', async () => {
    const run = await pinned('r');
    const teacher = evaluated('teacher', { x: [4, 4], y: [2, 4], z: [1, 1] });
    const before = evaluated('student-before', { x: [1, 4], y: [2, 4] });
    expect(await activities().compareTeacher({ run, teacher, before })).toMatchObject({ n: 2, mean: 0.375, confidence: 0.95 });
  });

  it('is null where no task was measured on both sides', async () => {
    const [teacher, before] = [evaluated('teacher', { x: [1, 1] }), evaluated('student-before', { x: [0, 0], y: [1, 1] })];
    expect(await activities().compareTeacher({ run: 'unused' as BlobRef, teacher, before })).toBeNull();
  });
});

describe('the gate', () => {
  const decide = async (run: BlobRef, after: EvalResult, before = all('student-before', 1), teacher = all('teacher', 4)) =>
    activities().decideGate({ run, teacher, before, after });

  it('accepts a student that came near its teacher, with the evidence and its interval beside it', async () => {
    const run = await pinned('r');
    const verdict = await decide(run, all('student-after', 3));
    expect(verdict).toMatchObject({ accepted: true, reasons: [], threshold: 0.7, teacher: 1, before: 0.25, after: 0.75, earlierGates: 0 });
    expect(verdict.improvement).toMatchObject({ n: 8, mean: 0.5, confidence: 0.95, method: 'exact' });
    expect(verdict.improvement?.interval.low).toBeGreaterThan(0);
    expect(verdict.overThreshold).toMatchObject({ n: 8, mean: expect.closeTo(0.05, 9) });
    expect(verdict.protocolHash).toBe((await project.records.load(run)).protocolHash);
    expect(await written('runs/r/gate.json')).toEqual(verdict);
  });

  it.each<[string, EvalResult, string[]]>([
    ['below the share of its teacher', all('student-after', 2), ['below_teacher_fraction']],
    ['worse than before', all('student-after', 0), ['below_teacher_fraction', 'regression']],
    ['not measured', evaluated('student-after', {}), ['not_measured']],
  ])('rejects a student %s', async (_, after, reasons) => {
    expect(await decide(await pinned('r'), after)).toMatchObject({ accepted: false, reasons });
  });

  it('rejects when the teacher solves nothing', async () => {
    const verdict = await decide(await pinned('r'), all('student-after', 1), all('student-before', 1), all('teacher', 0));
    expect(verdict).toMatchObject({ accepted: false, reasons: ['teacher_solves_nothing'] });
  });

  const LUCKY = { ...Object.fromEntries(EIGHT.map((task) => [task, [3, 4] as const])), p: [4, 4] as const };
  it.each<[string, string, boolean, string[]]>([
    ['without gate.confidence, a gain within noise is enough', '', true, []],
    ['with gate.confidence, it is insufficient evidence', '[gate]\nconfidence = 0.95\n', false, ['insufficient_evidence']],
  ])('%s', async (_, more, accepted, reasons) => {
    const verdict = await decide(await pinned('r', more), evaluated('student-after', LUCKY), all('student-before', 3));
    expect(verdict).toMatchObject({ accepted, reasons });
    expect(verdict.improvement?.interval.low).toBeLessThanOrEqual(0);
  });

  it('has no evidence against an import without counts by task, which a confidence refuses', async () => {
    const before: EvalResult = { ...all('student-before', 1), source: 'imported', perTask: [] };
    const plain = await decide(await pinned('r'), all('student-after', 3), before);
    expect(plain).toMatchObject({ accepted: true, improvement: null, overThreshold: { n: 8 } });
    const strict = await decide(await pinned('r2', '[gate]\nconfidence = 0.5\n'), all('student-after', 3), before);
    expect(strict).toMatchObject({ accepted: false, reasons: ['insufficient_evidence'] });
    const imported = await decide(await pinned('r3', '[gate]\nconfidence = 0.5\n'), all('student-after', 3), {
      ...all('student-before', 1),
      source: 'imported',
    });
    expect(imported).toMatchObject({ accepted: true, improvement: { n: 8 } });
  });

  it('takes the interval at the confidence that the config asks for', async () => {
    const verdict = await decide(await pinned('r', '[gate]\nconfidence = 0.5\n'), all('student-after', 3));
    expect(verdict.improvement).toMatchObject({ confidence: 0.5 });
  });

  it('counts how often its protocol was looked at before, each run once', async () => {
    const after = all('student-after', 3);
    const first = await pinned('r1');
    expect((await decide(first, after)).earlierGates).toBe(0);
    expect((await decide(first, after)).earlierGates).toBe(0);
    expect((await decide(await pinned('r2'), after)).earlierGates).toBe(1);
    expect((await decide(await pinned('r3', '[gate]\nk = 9\n'), after)).earlierGates).toBe(0);
  });
});
