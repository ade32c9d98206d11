import { ApplicationFailure } from '@temporalio/common';
import { Worker } from '@temporalio/worker';
import { describe, expect, it } from 'vitest';
import type { MeterTokens } from '../../core/measures/meters.ts';
import type { RunPlan } from '../../core/run/pinned-run.ts';
import { pauseUpdate, type RunStatus, resumeUpdate, setBudgetUpdate, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { workflowBundle } from '../support/bundle.ts';
import { localServer } from './environment.ts';
import { playedIn, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, notingIn, resolvedAs, serverOfFile, startIn, trialsUntilCancelled, waitsFor } from './runs.ts';

/** Few enough that the warm-up of a dozen updates, and the collection for it, must go on in new executions. */
const EVENTS_BEFORE_SUGGESTION = 70;

const env = serverOfFile(() =>
  localServer('--dynamic-config-value', `limit.historyCount.suggestContinueAsNew=${EVENTS_BEFORE_SUGGESTION}`),
);
const run = startIn(env);

const warmed = (warmup: Partial<RunPlan['warmup']>, more: Partial<RunPlan> = {}): AllActivities['resolveRun'] => {
  const plan = { steps: 1, warmup: { steps: 2, rolloutsPerTask: 1, loaded: false, ...warmup }, ...more };
  return resolvedAs({}, plan);
};

/** Activities that write down what matters of the order in which they are called. */
function observedWarmup() {
  const calls: string[] = [];
  const fake = fakeActivities();
  const noting = notingIn(calls);
  const activities: Partial<AllActivities> = {
    runTrial: noting(({ trialId, who, model, maxTurns }) => `trial ${trialId} ${who} ${model.version} ${maxTurns}`, fake.runTrial),
    keepTrajectories: noting(({ trials, areAll }) => `keep ${trials.count}${areAll ? '' : ' so far'}`, fake.keepTrajectories),
    gatherWarmup: noting(({ list }) => `gather ${list}`, fake.gatherWarmup),
    openTraining: noting(() => 'open', fake.openTraining),
    trainWarmup: noting(({ update, places, training }) => `update ${update} on ${places} at ${training.at.nextSeqId}`, fake.trainWarmup),
    noteWarmup: noting(({ row }) => `note ${row.update}`, fake.noteWarmup),
    saveState: noting(({ name }) => `state ${name}`, fake.saveState),
    saveSampler: noting(({ name }) => `sampler ${name}`, fake.saveSampler),
    trainBatch: noting(({ step }) => `train ${step}`, fake.trainBatch),
    closeEvaluation: noting(({ label }) => `evaluated ${label}`, fake.closeEvaluation),
  };
  return { calls, activities };
}
const withoutTrials = (calls: readonly string[]) => calls.filter((call) => !call.startsWith('trial'));

describe('a run with a warm-up', () => {
  it('has the teacher play the training tasks after the baselines, trains on that, saves, and only then publishes the first sampler', async () => {
    const { calls, activities } = observedWarmup();
    await run({ ...activities, resolveRun: warmed({ rolloutsPerTask: 2 }, { rolloutMaxTurns: 3 }) }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const status = await handle.query(statusQuery);
      expect(status.warmup).toEqual({ updates: 2, steps: 2, lossNatsPerToken: 0.5 });
      expect(Object.keys(status.wallMs)).toContain('warmup');
      expect(status.notices).toContain('warm-up on 4 sequences');
      // Two baselines, the collection, two updates, one step of 4 trials, and the last evaluation.
      expect(status.spend.usd).toBeCloseTo((1 + 1 + 6 * 3 + 2 * 6 + 4 * 3 + 1) / 100);
    });
    expect(calls.filter((call) => call.includes('-w-')).sort()).toEqual(
      ['000-0', '000-1', '001-0', '001-1', '002-0', '002-1'].map((slot) => `trial 0123abcd-w-${slot} teacher teacher 5`),
    );
    expect(withoutTrials(calls)).toEqual([
      'evaluated teacher',
      'evaluated student-before',
      'keep 6',
      'gather sha256:trajectories',
      'open',
      'update 1 on 1,2 at 1',
      'note 1',
      'state warmup-0001',
      'update 2 on 2,3 at 4',
      'note 2',
      'state warmup',
      'sampler step-0000',
      'train 1',
      'state step-0001',
      'sampler step-0001',
      'evaluated student-after',
    ]);
  });

  it('samples nothing for trajectories that were loaded', async () => {
    const { calls, activities } = observedWarmup();
    await run({ ...activities, resolveRun: warmed({ loaded: true }) }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
    expect(calls.filter((call) => call.includes('-w-') || call.startsWith('keep'))).toEqual([]);
    expect(calls).toContain('gather null');
    expect(calls.filter((call) => call.startsWith('update'))).toHaveLength(2);
  });

  it('with steps = 0 there is none', async () => {
    const { calls, activities } = observedWarmup();
    await run({ ...activities, resolveRun: warmed({ steps: 0, loaded: true }) }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const status = await handle.query(statusQuery);
      expect(status.warmup).toBeNull();
      expect(Object.keys(status.wallMs)).not.toContain('warmup');
    });
    expect(calls.filter((call) => /-w-|^(keep|gather|update|state warmup)/.test(call))).toEqual([]);
    expect(withoutTrials(calls).slice(2, 5)).toEqual(['open', 'sampler step-0000', 'train 1']);
  });

  it('tries a trial again whose infrastructure failed, and pays for both', async () => {
    let kept: Parameters<AllActivities['keepTrajectories']>[0] | undefined;
    const runTrial: AllActivities['runTrial'] = async (spec) =>
      trialFor(spec, spec.trialId.endsWith('-w-001-0') ? { executed: false, passed: false } : {});
    const keepTrajectories: AllActivities['keepTrajectories'] = async (order) => {
      kept = order;
      return fakeActivities().keepTrajectories(order);
    };
    const booked: MeterTokens[] = [];
    const tallySpend: AllActivities['tallySpend'] = async (order) => {
      booked.push(order.meters);
      return fakeActivities().tallySpend(order);
    };
    await run({ resolveRun: warmed({}), runTrial, keepTrajectories, tallySpend }, (handle) => handle.result());
    expect(kept && playedIn(kept.trials).map(({ trial }) => trial.trialId)).toEqual([
      '0123abcd-w-000-0',
      '0123abcd-w-001-0-r1',
      '0123abcd-w-002-0',
    ]);
    expect(booked[3]).toEqual({ student_sample: 2 + 12 }); // the checks, two baselines, four attempts
  });

  it('goes on in new executions without playing a trial or making an update twice, also when attempts die; histories replay', async () => {
    const [trials, updates]: [string[], string[]] = [[], []];
    let died = 0;
    const trainWarmup: AllActivities['trainWarmup'] = async (order) => {
      const trained = await fakeActivities().trainWarmup(order);
      updates.push(`${order.update} at ${order.training.at.nextSeqId}`);
      if (order.update === 5 && died++ === 0) throw new Error('the worker died after the update was applied');
      return trained;
    };
    const runTrial: AllActivities['runTrial'] = async (spec) => {
      trials.push(spec.trialId);
      return trialFor(spec);
    };
    const resolveRun = warmed({ steps: 12, rolloutsPerTask: 8 });
    await run({ resolveRun, trainWarmup, runTrial }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      const id = handle.workflowId;
      const { firstExecutionRunId: firstRunId } = handle;
      const latest = env().client.workflow.getHandle(id);
      expect((await latest.describe()).runId).not.toBe(firstRunId);
      expect((await latest.query<RunStatus>('status')).warmup).toMatchObject({ updates: 12 });
      const collected = await env().client.workflow.getHandle(`${id}.warmup`).fetchHistory();
      expect(collected.events?.[0]?.workflowExecutionStartedEventAttributes?.continuedExecutionRunId).toBeTruthy();
      const first = await env().client.workflow.getHandle(id, firstRunId).fetchHistory();
      for (const history of [first, collected]) await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, history, id);
    });
    expect(trials.filter((trialId) => trialId.includes('-w-'))).toHaveLength(3 * 8);
    expect(trials.length).toBe(new Set(trials).size);
    // The attempt that comes again starts at the place of the one that died, where it finds what that one did. Each update is followed by a save.
    const expected = Array.from({ length: 12 }, (_, done) => `${done + 1} at ${1 + 3 * done}`);
    expect(updates).toEqual(expected.flatMap((told) => (told.startsWith('5 ') ? [told, told] : [told])));
  }, 120_000);
});

describe('a person', () => {
  /** Tells when the first update is made, and goes on with it once it may. */
  function heldUpdate() {
    const [begun, may] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const updates: number[] = [];
    const trainWarmup: AllActivities['trainWarmup'] = async (order) => {
      updates.push(order.update);
      begun.resolve();
      await may.promise;
      return fakeActivities().trainWarmup(order);
    };
    return { updates, trainWarmup, begun: begun.promise, goOn: () => may.resolve() };
  }

  it('pauses it between updates', async () => {
    const held = heldUpdate();
    await run({ resolveRun: warmed({}), trainWarmup: held.trainWarmup }, async (handle) => {
      await held.begun;
      await handle.executeUpdate(pauseUpdate, { args: [ask] });
      held.goOn();
      await waitsFor(handle, 'pause');
      expect(await handle.query(statusQuery)).toMatchObject({ phase: 'warmup', warmup: { updates: 1, steps: 2 } });
      await handle.executeUpdate(resumeUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
    expect(held.updates).toEqual([1, 2]);
  });

  it('stops it between updates: the one in flight is finished, and what it taught is saved', async () => {
    const held = heldUpdate();
    await run({ resolveRun: warmed({}), trainWarmup: held.trainWarmup }, async (handle) => {
      await held.begun;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      held.goOn();
      expect(await handle.result()).toMatchObject({
        outcome: 'stopped',
        weights: { statePath: 'tinker://s/weights/step-0000', samplerPath: 'tinker://s/sampler_weights/step-0000' },
      });
    });
    expect(held.updates).toEqual([1]);
  });

  it('stops it while the teacher plays: the trials in flight are cancelled, and nothing is saved', async () => {
    const started = Promise.withResolvers<void>();
    await run({ resolveRun: warmed({}), runTrial: trialsUntilCancelled('-w-', started.resolve) }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', weights: null });
    });
  });

  it('is asked for more money before the teacher plays, with what a trial of it may cost', async () => {
    const { calls, activities } = observedWarmup();
    // The baselines cost 2 cents, and leave 5.
    const closeEvaluation: AllActivities['closeEvaluation'] = async (order) => ({
      ...(await fakeActivities().closeEvaluation(order)),
      trialUsd: 0.06,
    });
    const resolveRun = warmed({}, { maxUsd: 0.07, trialConcurrency: 1 });
    await run({ ...activities, closeEvaluation, resolveRun }, async (handle) => {
      await waitsFor(handle, 'budget');
      expect((await handle.query(statusQuery)).waitingFor?.question).toMatch(
        /play for the warm-up has 3 trials to run; one more may cost \$0\.06/,
      );
      expect(calls.filter((call) => call.includes('-w-'))).toEqual([]);
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });
});

it('trajectories that leave nothing to train on fail the run by name, with what they cost booked', async () => {
  const gatherWarmup = async (): Promise<never> => {
    throw ApplicationFailure.nonRetryable('of 3 trials none passed', 'NothingToWarmUpOn');
  };
  await run({ resolveRun: warmed({}), gatherWarmup }, async (handle) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'NothingToWarmUpOn', message: 'of 3 trials none passed' } });
    expect((await handle.query(statusQuery)).spend.usd).toBeCloseTo((1 + 1 + 9) / 100);
  });
});
