import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import type { EvalResult } from '../../core/run/results.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import { statusQuery } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { observed } from './observed.ts';
import { ask, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

const run = startIn(serverOfFile(localServer));

/** An evaluation that an earlier run measured. */
const imported = (which: 'teacher' | 'student', more: Partial<EvalResult> = {}) =>
  importedOf(which === 'teacher' ? 'teacher' : 'student-before', which, more);

const evaluations = (calls: readonly string[]) => calls.filter((call) => /^(evaluated|compared|train)/.test(call));
const AFTER = 'evaluated student-after of step-0001';

describe('baselines', () => {
  it('are measured with as many attempts as the gate asks for', async () => {
    const { calls, trials, activities } = observed();
    await run({ ...activities, resolveRun: resolvedAs({}, { steps: 1, gateK: 3 }) }, (handle) => handle.result());
    expect(trials.filter((id) => id.includes('-e'))).toHaveLength(3 * 2 * 3);
    expect(calls).not.toContain('drew'); // no interim evaluations were asked for
    expect(evaluations(calls)).toEqual([
      'evaluated teacher of teacher',
      'evaluated student-before of student',
      'compared measured measured',
      'train 1 on step-0000',
      AFTER,
    ]);
  });

  it('that are imported are not measured again: a teacher', async () => {
    const { calls, trials, activities } = observed();
    const importedBaselines = { teacher: imported('teacher'), student: null };
    const given: unknown[] = [];
    const decideGate: AllActivities['decideGate'] = async (order) => {
      given.push(order.teacher);
      return fakeActivities().decideGate(order);
    };
    await run({ ...activities, decideGate, resolveRun: resolvedAs({ importedBaselines }, { steps: 1 }) }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const { evaluations, spend } = await handle.query(statusQuery);
      expect(evaluations.map(({ label, source }) => `${label} ${source}`)).toEqual([
        'teacher imported',
        'student-before measured',
        'student-after measured',
      ]);
      expect(evaluations[0]).toMatchObject({ passed: 3, executed: 6, solveRate: 0.5, usd: 0, meters: {} });
      // One baseline, a step of 4 trials, and the last evaluation.
      expect(spend.usd).toBeCloseTo((1 + 4 * 3 + 1) / 100);
    });
    expect(trials.filter((id) => id.includes(' teacher '))).toEqual([]);
    expect(evaluations(calls)).toEqual([
      'evaluated student-before of student',
      'compared imported measured',
      'train 1 on step-0000',
      AFTER,
    ]);
    expect(given).toMatchObject([{ source: 'imported', perTask: [{ taskId: 'x', executed: 3, passed: 3 }, { taskId: 'y' }] }]);
  });

  it('that are imported are not measured again: a student, and both', async () => {
    const student = observed();
    const onlyStudent = { teacher: null, student: imported('student') };
    await run({ ...student.activities, resolveRun: resolvedAs({ importedBaselines: onlyStudent }, { steps: 1 }) }, (it) => it.result());
    expect(evaluations(student.calls)).toEqual([
      'evaluated teacher of teacher',
      'compared measured imported',
      'train 1 on step-0000',
      AFTER,
    ]);

    const both = observed();
    const importedBaselines = { teacher: imported('teacher'), student: imported('student') };
    await run({ ...both.activities, resolveRun: resolvedAs({ importedBaselines }, { steps: 1 }) }, (it) => it.result());
    expect(evaluations(both.calls)).toEqual(['compared imported imported', 'train 1 on step-0000', AFTER]);
  });

  it('that do not fit fail the run by name before anything is spent', async () => {
    const { calls, trials, activities } = observed();
    const resolveRun = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('eval.teacher_baseline_from: t.json: … (import_task_set)', 'BadRunInput');
    };
    await run({ ...activities, resolveRun }, async (handle) => {
      await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'BadRunInput', message: /import_task_set/ } });
      expect((await handle.query(statusQuery)).spend.usd).toBe(0);
    });
    expect([...calls, ...trials]).toEqual([]);
  });

  it('without counts by task leave the question open, and the question says why', async () => {
    const importedBaselines = { teacher: imported('teacher', { perTask: [] }), student: imported('student') };
    await run({ compareTeacher: async () => null, resolveRun: resolvedAs({ importedBaselines }, { steps: 1 }) }, async (handle) => {
      await waitsFor(handle, 'teacher');
      const { waitingFor } = await handle.query(statusQuery);
      expect(waitingFor?.question).toMatch(/teacher 3\/6, student-before 3\/6, but the imported report of teacher has no per_task/);
      await handle.executeUpdate('continueAnyway', { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });
});

describe('deferred baselines', () => {
  it('are measured after training, and the run says what it could not ask before', async () => {
    const { calls, activities } = observed();
    const importedBaselines = { teacher: null, student: imported('student') };
    const resolveRun = resolvedAs({ importedBaselines }, { steps: 1, deferBaselines: true });
    await run({ ...activities, resolveRun }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const { notices, evaluations } = await handle.query(statusQuery);
      expect(notices).toContainEqual(expect.stringMatching(/eval\.defer_baselines.*not known before/));
      expect(evaluations.map(({ label, source }) => `${label} ${source}`)).toEqual([
        'student-before imported',
        'student-after measured',
        'teacher measured',
      ]);
    });
    expect(evaluations(calls)).toEqual(['train 1 on step-0000', AFTER, 'evaluated teacher of teacher']);
    expect(calls.indexOf('state step-0001')).toBeLessThan(calls.indexOf(AFTER));
  });

  it('measure nothing before training nor after it when both are imported', async () => {
    const { calls, activities } = observed();
    const importedBaselines = { teacher: imported('teacher'), student: imported('student') };
    const resolveRun = resolvedAs({ importedBaselines }, { steps: 1, deferBaselines: true });
    await run({ ...activities, resolveRun }, (handle) => handle.result());
    expect(evaluations(calls)).toEqual(['compared imported imported', 'train 1 on step-0000', AFTER]);
  });
});
