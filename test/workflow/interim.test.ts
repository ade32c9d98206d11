import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { setBudgetUpdate, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { tasksIn, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { observed } from './observed.ts';
import { ask, replay, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

const env = serverOfFile(localServer);
const run = startIn(env);

describe('interim evaluations', () => {
  const every2 = { every: 2, tasks: 2, k: 2 };

  it('look at the weights of every second step, on the same training tasks, and leave what steps sample from as it is', async () => {
    const { calls, trials, activities } = observed();
    const resolveRun = resolvedAs({}, { steps: 5, saveStateEvery: 8, samplerRefreshEvery: 3, interim: every2, maxTurns: 7 });
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
    await replay(env(), id, `${id}.eval-interim-0004`);
  });

  it('come after the last step too, when its weights are safe, and share a sampler with the refresh', async () => {
    const { calls, activities } = observed();
    const resolveRun = resolvedAs({}, { steps: 4, saveStateEvery: 8, samplerRefreshEvery: 2, interim: every2 });
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
    const resolveRun = resolvedAs({}, { steps: 2, interim: { ...every2, every: 1 }, maxUsd: 0.15 });
    await run({ ...activities, resolveRun }, async (handle) => {
      await waitsFor(handle, 'budget');
      const { waitingFor, spend, step } = await handle.query(statusQuery);
      expect(waitingFor?.question).toMatch(/^the interim-0001 evaluation has 4 trials to run; one more may cost \$0\.03/);
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
    const resolveRun = resolvedAs({}, { interim: { ...every2, every: 1 } });
    await run({ closeEvaluation, resolveRun }, (handle) =>
      expect(handle.result()).rejects.toMatchObject({ cause: { type: 'NothingExecuted' } }),
    );
  });

  it('a stop in one of them saves what was trained', async () => {
    const started = Promise.withResolvers<void>();
    const runTrial: AllActivities['runTrial'] = async (spec) => {
      if (!spec.trialId.includes('-ei')) return trialFor(spec);
      started.resolve();
      await new Promise((resolve) => setTimeout(resolve, 200));
      return trialFor(spec);
    };
    await run({ runTrial, resolveRun: resolvedAs({}, { steps: 4, interim: { ...every2, every: 1 } }) }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({
        outcome: 'stopped',
        weights: { statePath: 'tinker://s/weights/step-0001', samplerPath: 'tinker://s/sampler_weights/step-0001' },
      });
    });
  });

  it('of tasks that changed fail the run', async () => {
    const listTasks: AllActivities['listTasks'] = async ({ tasks }) => {
      if (tasksIn(tasks).some(({ id }) => id === 'a')) throw ApplicationFailure.nonRetryable('1 task(s) changed: a', 'TaskChanged');
      return tasksIn(tasks);
    };
    await run({ listTasks, resolveRun: resolvedAs({}, { interim: { ...every2, every: 1 } }) }, (handle) =>
      expect(handle.result()).rejects.toMatchObject({ cause: { type: 'TaskChanged' } }),
    );
  });
});
