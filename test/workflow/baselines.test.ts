import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PinnedRun, RunPlan } from '../../core/run/pinned-run.ts';
import type { EvalResult } from '../../core/run/results.ts';
import type { distill } from '../../workflows/distill.ts';
import { setBudgetUpdate, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { localServer, withWorkers, workflowBundle } from './environment.ts';
import { type AllActivities, fakeActivities, pinned, trialOf } from './fake-activities.ts';

let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await localServer();
});
afterAll(() => env?.teardown());

type Handle = WorkflowHandle<typeof distill>;
const INPUT = { agent: 'turn', config: 'run.toml', taskIds: ['a', 'b', 'c'], holdoutTaskIds: ['x', 'y'] };
const ask = { by: 'tester' };

function run<T>(activities: Partial<AllActivities>, test: (handle: Handle) => Promise<T>): Promise<T> {
  return withWorkers(env, fakeActivities(activities), async (taskQueue) =>
    test((await env.client.workflow.start('distill', { taskQueue, workflowId: `run-${randomUUID()}`, args: [INPUT] })) as Handle),
  );
}
const resolved =
  (over: Partial<PinnedRun>, plan: Partial<RunPlan> = {}): AllActivities['resolveRun'] =>
  async ({ runId }) =>
    pinned({ runId, ...over }, plan);
const waitsFor = (handle: Handle, kind: string) =>
  expect.poll(async () => (await handle.query(statusQuery)).waitingFor?.kind, { timeout: 40_000 }).toBe(kind);

/** An evaluation that an earlier run measured. */
const imported = (which: 'teacher' | 'student', more: Partial<EvalResult> = {}): EvalResult => ({
  label: which === 'teacher' ? 'teacher' : 'student-before',
  source: 'imported',
  model: { kind: 'base', model: which, version: which },
  trials: 6,
  executed: 6,
  passed: 3,
  infraFailed: 0,
  solveRate: 0.5,
  perTask: [
    { taskId: 'x', executed: 3, passed: 3 },
    { taskId: 'y', executed: 3, passed: 0 },
  ],
  meters: {},
  usd: 0,
  wallMs: 0,
  ...more,
});

/** Activities that write down what matters of the order in which they are called. */
function observed() {
  const calls: string[] = [];
  const trials: string[] = [];
  const fake = fakeActivities();
  const noting =
    <Order, R>(told: (order: Order) => string, work: (order: Order) => R) =>
    (order: Order) => {
      calls.push(told(order));
      return work(order);
    };
  const activities: Partial<AllActivities> = {
    runTrial: async (spec) => {
      trials.push(`${spec.trialId} ${spec.task.id} ${spec.who} ${spec.model.version} ${spec.maxTurns}`);
      return trialOf(spec);
    },
    saveState: noting(({ name }) => `state ${name}`, fake.saveState),
    saveSampler: noting(({ name }) => `sampler ${name}`, fake.saveSampler),
    trainBatch: noting(({ step, sampler }) => `train ${step} on ${sampler}`, fake.trainBatch),
    closeEvaluation: noting(({ label, model }) => `evaluated ${label} of ${model.version}`, fake.closeEvaluation),
    compareTeacher: noting(({ teacher, before }) => `compared ${teacher.source} ${before.source}`, fake.compareTeacher),
    drawInterimTasks: noting(() => 'drew', fake.drawInterimTasks),
  };
  return { calls, trials, activities };
}
const evaluations = (calls: readonly string[]) => calls.filter((call) => /^(evaluated|compared|train)/.test(call));
const AFTER = 'evaluated student-after of step-0001';

describe('baselines', () => {
  it('are measured with as many attempts as the gate asks for', async () => {
    const { calls, trials, activities } = observed();
    await run({ ...activities, resolveRun: resolved({}, { steps: 1, gateK: 3 }) }, (handle) => handle.result());
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
    await run({ ...activities, decideGate, resolveRun: resolved({ importedBaselines }, { steps: 1 }) }, async (handle) => {
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
    await run({ ...student.activities, resolveRun: resolved({ importedBaselines: onlyStudent }, { steps: 1 }) }, (it) => it.result());
    expect(evaluations(student.calls)).toEqual([
      'evaluated teacher of teacher',
      'compared measured imported',
      'train 1 on step-0000',
      AFTER,
    ]);

    const both = observed();
    const importedBaselines = { teacher: imported('teacher'), student: imported('student') };
    await run({ ...both.activities, resolveRun: resolved({ importedBaselines }, { steps: 1 }) }, (it) => it.result());
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
    await run({ compareTeacher: async () => null, resolveRun: resolved({ importedBaselines }, { steps: 1 }) }, async (handle) => {
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
    const resolveRun = resolved({ importedBaselines }, { steps: 1, deferBaselines: true });
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
    const resolveRun = resolved({ importedBaselines }, { steps: 1, deferBaselines: true });
    await run({ ...activities, resolveRun }, (handle) => handle.result());
    expect(evaluations(calls)).toEqual(['compared imported imported', 'train 1 on step-0000', AFTER]);
  });
});

describe('interim evaluations', () => {
  const every2 = { every: 2, tasks: 2, k: 2 };

  it('look at the weights of every second step, on the same training tasks, and leave what steps sample from as it is', async () => {
    const { calls, trials, activities } = observed();
    const resolveRun = resolved({}, { steps: 5, saveStateEvery: 8, samplerRefreshEvery: 3, interim: every2, maxTurns: 7 });
    const id = await run({ ...activities, resolveRun }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted', evaluations: [{}, {}, {}] });
      const { interim, spend } = await handle.query(statusQuery);
      expect(interim.map(({ label, model, trials }) => `${label} ${model.version} ${trials}`)).toEqual([
        'interim-0002 step-0002 4',
        'interim-0004 step-0004 4',
      ]);
      // Three evaluations on held-out tasks, five steps of 4 trials, two interim evaluations.
      expect(spend.usd).toBeCloseTo((3 + 5 * 12 + 2) / 100);
      return handle.workflowId;
    });
    expect(calls.filter((call) => !/^compared|student-before|teacher/.test(call))).toEqual([
      'sampler step-0000',
      'train 1 on step-0000',
      'train 2 on step-0000',
      'sampler step-0002',
      'drew',
      'evaluated interim-0002 of step-0002',
      'train 3 on step-0000',
      'sampler step-0003',
      'train 4 on step-0003',
      'sampler step-0004',
      'evaluated interim-0004 of step-0004',
      'train 5 on step-0003',
      'state step-0005',
      'sampler step-0005',
      'evaluated student-after of step-0005',
    ]);
    const interim = (step: string) => ['000-0', '000-1', '001-0', '001-1'].map((slot) => `0123abcd-ei${step}-${slot}`);
    expect(trials.filter((it) => it.includes('-ei')).map((it) => it.split(' ')[0])).toEqual(
      expect.arrayContaining([...interim('0002'), ...interim('0004')]),
    );
    expect(new Set(trials.filter((it) => it.includes('-ei')).map((it) => it.split(' ').slice(1).join(' ')))).toEqual(
      new Set(['a student step-0002 7', 'b student step-0002 7', 'a student step-0004 7', 'b student step-0004 7']),
    );
    expect(new Set(trials.map((it) => it.split(' ')[0])).size).toBe(trials.length);
    for (const workflowId of [id, `${id}.eval-interim-0004`]) {
      const history = await env.client.workflow.getHandle(workflowId).fetchHistory();
      await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, workflowId);
    }
  });

  it('come after the last step too, when its weights are safe, and share a sampler with the refresh', async () => {
    const { calls, activities } = observed();
    const resolveRun = resolved({}, { steps: 4, saveStateEvery: 8, samplerRefreshEvery: 2, interim: every2 });
    await run({ ...activities, resolveRun }, (handle) => handle.result());
    expect(calls.slice(calls.indexOf('train 2 on step-0000'))).toEqual([
      'train 2 on step-0000',
      'sampler step-0002',
      'drew',
      'evaluated interim-0002 of step-0002',
      'train 3 on step-0002',
      'train 4 on step-0002',
      'state step-0004',
      'sampler step-0004',
      'evaluated interim-0004 of step-0004',
      'evaluated student-after of step-0004',
    ]);
  });

  it('wait at the cap before they cost anything, and are in the forecast', async () => {
    const { calls, activities } = observed();
    // Baselines 0.02 and a step 0.12: an interim evaluation of 4 trials at 0.005 each passes the cap.
    const resolveRun = resolved({}, { steps: 2, interim: { ...every2, every: 1 }, maxUsd: 0.15 });
    await run({ ...activities, resolveRun }, async (handle) => {
      await waitsFor(handle, 'budget');
      const { waitingFor, spend, step } = await handle.query(statusQuery);
      expect(waitingFor?.question).toMatch(/^the interim-0001 evaluation may cost \$0\.0200/);
      expect(step).toBe(1);
      // Another step, two interim evaluations of 4 trials and the last evaluation of 2, at what a trial has cost.
      expect(spend.forecastUsd).toBeCloseTo(0.14 + 0.12 + 2 * 0.02 + 0.01);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      expect((await handle.query(statusQuery)).spend.forecastUsd).toBeCloseTo((await handle.query(statusQuery)).spend.usd);
    });
    expect(calls).toContain('evaluated interim-0002 of step-0002');
  });

  it('that executed nothing end the run by name', async () => {
    const closeEvaluation: AllActivities['closeEvaluation'] = async (order) => {
      if (order.label === 'interim-0001') throw ApplicationFailure.nonRetryable('interim-0001: none was executed', 'NothingExecuted');
      return fakeActivities().closeEvaluation(order);
    };
    const resolveRun = resolved({}, { interim: { ...every2, every: 1 } });
    await run({ closeEvaluation, resolveRun }, (handle) =>
      expect(handle.result()).rejects.toMatchObject({ cause: { type: 'NothingExecuted' } }),
    );
  });

  it('a stop in one of them saves what was trained', async () => {
    const started = Promise.withResolvers<void>();
    const runTrial: AllActivities['runTrial'] = async (spec) => {
      if (!spec.trialId.includes('-ei')) return trialOf(spec);
      started.resolve();
      await new Promise((resolve) => setTimeout(resolve, 200));
      return trialOf(spec);
    };
    await run({ runTrial, resolveRun: resolved({}, { steps: 4, interim: { ...every2, every: 1 } }) }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({
        outcome: 'stopped',
        weights: { statePath: 'tinker://s/weights/step-0001', samplerPath: 'tinker://s/sampler_weights/step-0001' },
      });
    });
  });

  it('of tasks that changed fail the run', async () => {
    const checkTasks: AllActivities['checkTasks'] = async ({ tasks }) => {
      if (tasks.some(({ id }) => id === 'a')) throw ApplicationFailure.nonRetryable('1 task(s) changed: a', 'TaskChanged');
    };
    await run({ checkTasks, resolveRun: resolved({}, { interim: { ...every2, every: 1 } }) }, (handle) =>
      expect(handle.result()).rejects.toMatchObject({ cause: { type: 'TaskChanged' } }),
    );
  });
});
