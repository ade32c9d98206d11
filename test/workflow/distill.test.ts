import { randomUUID } from 'node:crypto';
import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Estimate, StepResult } from '../../core/run/results.ts';
import type { distill } from '../../workflows/distill.ts';
import {
  confirmCostUpdate,
  decidePromotionUpdate,
  pauseUpdate,
  resumeUpdate,
  setBudgetUpdate,
  statusQuery,
  stopUpdate,
} from '../../workflows/messages.ts';
import { localServer, withWorkers } from './environment.ts';
import { type AllActivities, ESTIMATE, evidence, fakeActivities, pinned, stepResult, trialOf } from './fake-activities.ts';

let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await localServer();
});
afterAll(() => env?.teardown());

const INPUT = { agent: 'turn', config: 'run.toml', taskIds: ['a', 'b'], holdoutTaskIds: ['x', 'y'] };
type Handle = WorkflowHandle<typeof distill>;

function run<T>(activities: Partial<AllActivities>, test: (handle: Handle) => Promise<T>, input: unknown = INPUT): Promise<T> {
  return withWorkers(env, fakeActivities(activities), async (taskQueue) =>
    test((await env.client.workflow.start('distill', { taskQueue, workflowId: `run-${randomUUID()}`, args: [input] })) as Handle),
  );
}
const waitsFor = (handle: Handle, kind: string) =>
  expect.poll(async () => (await handle.query(statusQuery)).waitingFor?.kind, { timeout: 40_000 }).toBe(kind);
const ask = { by: 'tester' };

/** Trials whose id contains `part` run until they are cancelled. */
function untilCancelled(part: string, onStart: () => void): AllActivities['runTrial'] {
  return async (spec) => {
    if (!spec.trialId.includes(part)) return trialOf(spec);
    onStart();
    const activity = Context.current();
    const beat = setInterval(() => activity.heartbeat(), 100);
    return activity.cancelled.finally(() => clearInterval(beat));
  };
}

describe('a run that goes well', () => {
  it('ends as it should when its mirror cannot be written, and says so', async () => {
    const mirrorRun = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('no space left on device');
    };
    await run({ mirrorRun }, async (handle) => {
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      expect((await handle.query(statusQuery)).notices).toContainEqual(expect.stringMatching(/status\.json .*no space left/));
    });
  });

  it('goes through every phase, trains on each batch once and ends accepted', async () => {
    const calls: string[] = [];
    const result = await run(
      {
        trainBatch: async (order) => {
          calls.push(`train ${order.step} on ${order.sampler} at ${order.training.nextSeqId}: ${order.episodes.length}`);
          return fakeActivities().trainBatch(order);
        },
        saveSampler: async (order) => {
          calls.push(`sampler ${order.name}`);
          return fakeActivities().saveSampler(order);
        },
        saveState: async (order) => {
          calls.push(`state ${order.name}`);
          return fakeActivities().saveState(order);
        },
      },
      (handle) => handle.result(),
    );
    expect(result).toMatchObject({
      outcome: 'accepted',
      adapter: { version: 1 },
      weights: { samplerPath: 'tinker://s/sampler_weights/step-0002' },
    });
    expect(calls).toEqual([
      'sampler step-0000',
      'train 1 on step-0000 at 2: 4',
      'sampler step-0001',
      'state step-0001',
      'train 2 on step-0001 at 6: 4',
      'state step-0002',
      'sampler step-0002',
    ]);
  });

  it('never has more trials in flight than trial_concurrency, and starts scoring before the batch ends', async () => {
    let [running, most, done, scoredEarly] = [0, 0, 0, false];
    await run(
      {
        runTrial: async (spec) => {
          most = Math.max(most, ++running);
          await new Promise((resolve) => setTimeout(resolve, 20));
          running--;
          done++;
          return trialOf(spec);
        },
        scoreEpisode: async (order) => {
          scoredEarly ||= done < 8;
          return fakeActivities().scoreEpisode(order);
        },
        resolveRun: async () => pinned({}, { tasksPerBatch: 2, groupSize: 4, steps: 1 }),
      },
      (handle) => handle.result(),
    );
    expect(most).toBe(2);
    expect(scoredEarly).toBe(true);
  });

  it('tries a trial again under a new id when its infrastructure failed, and trains on all that sampled, graded or not', async () => {
    const trials: string[] = [];
    let trainedOn = -1;
    let meters: unknown;
    await run(
      {
        resolveRun: async () => pinned({}, { steps: 1 }),
        runTrial: async (spec) => {
          trials.push(spec.trialId);
          if (spec.trialId.includes('-s0001-000-1')) return trialOf(spec, { spans: null });
          return trialOf(spec, spec.trialId.includes('-s0001-000-0') ? { executed: false, passed: false, reward: null } : {});
        },
        trainBatch: async (order) => {
          trainedOn = order.episodes.length;
          return fakeActivities().trainBatch(order);
        },
        closeStep: async (order) => {
          meters = order.trials.map(({ trial }) => trial.meters);
          return fakeActivities().closeStep(order);
        },
      },
      (handle) => handle.result(),
    );
    expect(meters).toEqual([{ student_sample: 6 }, { student_sample: 3 }, { student_sample: 3 }, { student_sample: 3 }]);
    expect(trials.filter((id) => id.includes('-s0001-000-0'))).toEqual(['0123abcd-s0001-000-0', '0123abcd-s0001-000-0-r1']);
    expect(trainedOn).toBe(3);
  });
});

describe('waits', () => {
  it('asks for the cost, is confirmed once, and tells a second answer who decided', async () => {
    await run({ resolveRun: async () => pinned({ yes: false }) }, async (handle) => {
      await waitsFor(handle, 'cost');
      await expect(handle.executeUpdate(confirmCostUpdate, { args: [{ by: '' }] })).rejects.toMatchObject({
        cause: { message: /say who decides/ },
      });
      const { waitingFor } = await handle.query(statusQuery);
      await handle.executeUpdate(confirmCostUpdate, { args: [{ ...ask, waitId: waitingFor?.id, via: 'cli' }] });
      await expect(handle.executeUpdate(confirmCostUpdate, { args: [{ by: 'late' }] })).rejects.toMatchObject({
        cause: { message: /confirmCost by tester through cli/ },
      });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });

  it('yes does not skip the question while a price is unknown and there is no cap', async () => {
    const unpriced: Estimate = { ...ESTIMATE, pricedUsd: 0, unpricedMeters: ['teacher_prefill'], fullyPriced: false };
    await run({ estimateRun: async () => unpriced }, async (handle) => {
      await waitsFor(handle, 'cost');
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped' });
    });
  });

  it('promotes only after a person agrees; a signal in the wrong state is recorded and not applied', async () => {
    let promoted = 0;
    const promoteAdapter = async () => ({ keyVariable: `K${++promoted}` });
    await run({ resolveRun: async () => pinned({ promote: true }), promoteAdapter }, async (handle) => {
      await handle.signal('decidePromotion', { by: 'eager', approve: true });
      await waitsFor(handle, 'promotion');
      expect(promoted).toBe(0);
      expect((await handle.query(statusQuery)).decisions).toMatchObject([
        { by: 'eager', applied: false, refusal: expect.stringMatching(/does not ask/) },
      ]);
      await handle.signal('promote', { ...ask, approve: true });
      expect(await handle.result()).toMatchObject({ outcome: 'promoted' });
      expect(promoted).toBe(1);
    });
  });

  it('a message that is there before the run has begun is judged like any other', async () => {
    await withWorkers(env, fakeActivities({ resolveRun: async () => pinned({ promote: true }) }), async (taskQueue) => {
      const handle = await env.client.workflow.signalWithStart('distill', {
        taskQueue,
        workflowId: `run-${randomUUID()}`,
        args: [INPUT],
        signal: 'decidePromotion',
        signalArgs: [{ by: 'eager', approve: true }],
      });
      await waitsFor(handle, 'promotion');
      expect((await handle.query(statusQuery)).decisions).toMatchObject([{ by: 'eager', applied: false }]);
      await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: false }] });
      expect(await handle.result()).toMatchObject({ outcome: 'promotion declined' });
    });
  });

  it('a flood of large messages leaves a run that can be read and ends', async () => {
    await run({ resolveRun: async () => pinned({ promote: true }) }, async (handle) => {
      const long = 'x'.repeat(20_000);
      for (let sent = 0; sent < 60; sent++) await handle.signal('setBudget', { by: long, reason: long, via: long, maxUsd: -sent });
      await waitsFor(handle, 'promotion');
      const tooLong = handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: true, reason: long }] });
      await expect(tooLong).rejects.toMatchObject({ cause: { message: expect.stringMatching(/reason/) } });
      await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: true }] });
      expect(await handle.result()).toMatchObject({ outcome: 'promoted' });
      const { decisions } = await handle.query(statusQuery);
      expect(decisions.map(({ answer }) => answer)).toEqual([...Array.from({ length: 50 }, (_, kept) => -kept - 10), true]);
      expect(JSON.stringify(decisions).length).toBeLessThan(500_000);
    });
  });

  it('settings that cannot be written leave the adapter and say what to do by hand', async () => {
    const promoteAdapter = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('settings.toml is not valid TOML', 'SettingsUnusable');
    };
    await run({ resolveRun: async () => pinned({ promote: true }), promoteAdapter }, async (handle) => {
      await waitsFor(handle, 'promotion');
      const withNote = { ...ask, approve: true, maxUsd: 5 }; // a key of another message says nothing here
      await handle.executeUpdate(decidePromotionUpdate, { args: [withNote] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted', adapter: { version: 1 } });
      expect((await handle.query(statusQuery)).notices.at(-1)).toMatch(/not promoted: settings.toml is not valid TOML/);
    });
  });

  it('a refused promotion leaves the adapter and promotes nothing', async () => {
    const promoteAdapter = async (): Promise<never> => {
      throw new Error('promoted against a no');
    };
    await run({ resolveRun: async () => pinned({ promote: true }), promoteAdapter }, async (handle) => {
      await waitsFor(handle, 'promotion');
      await handle.executeUpdate(decidePromotionUpdate, { args: [{ ...ask, approve: false }] });
      expect(await handle.result()).toMatchObject({ outcome: 'promotion declined', adapter: { version: 1 } });
    });
  });

  it('waits at the cap, refuses a cap below what is spent, and goes on after a raise', async () => {
    await run({ resolveRun: async () => pinned({}, { maxUsd: 0.2 }) }, async (handle) => {
      await waitsFor(handle, 'budget');
      const { step, spend } = await handle.query(statusQuery);
      expect(step).toBe(1);
      await expect(handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: spend.usd / 2 }] })).rejects.toMatchObject({
        cause: { message: /above what is spent/ },
      });
      await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 10 }] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted', spend: { maxUsd: 10 } });
    });
  });

  it('pauses between pieces of work and resumes', async () => {
    await run({ resolveRun: async () => pinned({ yes: false }) }, async (handle) => {
      await waitsFor(handle, 'cost');
      await handle.executeUpdate(pauseUpdate, { args: [ask] });
      await handle.executeUpdate(confirmCostUpdate, { args: [ask] });
      await waitsFor(handle, 'pause');
      await handle.executeUpdate(resumeUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });
});

describe('ends early', () => {
  it('a tripwire kill ends the run before the bad weights are saved or sampled', async () => {
    const saved: string[] = [];
    const closeStep: AllActivities['closeStep'] = async ({ step, sampler, guard, train, trials }): Promise<StepResult> =>
      stepResult(
        step,
        sampler.version,
        trials.length,
        train.nextSeqId,
        guard,
        step === 2 ? { kill: 'entropy at 0.1 of its first value' } : {},
      );
    const saveState: AllActivities['saveState'] = async (order) => {
      saved.push(order.name);
      return fakeActivities().saveState(order);
    };
    const result = await run({ resolveRun: async () => pinned({}, { steps: 4 }), closeStep, saveState }, (handle) => handle.result());
    expect(result).toMatchObject({ outcome: 'stopped by tripwire', verdict: null, adapter: null });
    expect(saved).toEqual(['step-0001']);
  });

  it('the second empty batch in a row stops the run', async () => {
    const closeStep: AllActivities['closeStep'] = async ({ step, sampler, guard, train, trials }) =>
      stepResult(
        step,
        sampler.version,
        trials.length,
        train.nextSeqId,
        { ...guard, emptyStreak: guard.emptyStreak + 1 },
        { starved: guard.emptyStreak === 1 },
      );
    const result = await run({ resolveRun: async () => pinned({}, { steps: 9 }), closeStep }, (handle) => handle.result());
    expect(result).toMatchObject({ outcome: 'stopped: nothing to train on' });
  });

  it('stop cancels the batch in flight, saves what was trained and ends as stopped', async () => {
    const started = Promise.withResolvers<void>();
    await run({ runTrial: untilCancelled('-s0002', started.resolve) }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', weights: { statePath: 'tinker://s/weights/step-0001' } });
    });
  });

  it('a cancelled run cancels the batch in flight, saves what was trained once and ends as cancelled', async () => {
    const saved: string[] = [];
    const save =
      <Order extends { name: string }, R>(kind: string, work: (order: Order) => R) =>
      (order: Order) => {
        saved.push(`${kind} ${order.name}`);
        return work(order);
      };
    const { saveState, saveSampler } = fakeActivities();
    const started = Promise.withResolvers<void>();
    const activities = {
      runTrial: untilCancelled('-s0002', started.resolve),
      saveState: save('state', saveState),
      saveSampler: save('sampler', saveSampler),
    };
    await run(activities, async (handle) => {
      await started.promise;
      await handle.cancel();
      await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
      const { outcome, weights } = await handle.query(statusQuery);
      expect({ outcome, weights }).toMatchObject({ outcome: 'stopped', weights: { statePath: 'tinker://s/weights/step-0001' } });
      const { events } = await handle.fetchHistory();
      expect(events?.filter((event) => event.workflowTaskFailedEventAttributes)).toEqual([]);
    });
    expect(saved).toEqual(['sampler step-0000', 'sampler step-0001', 'state step-0001']);
  });

  it('a failed preflight check fails the run by name, with the check in the status', async () => {
    const checkModels = async () => [{ name: 'vocabulary', ok: false, detail: 'id 5 differs', numbers: { id: 5 } }];
    await run({ checkModels }, async (handle) => {
      await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'PreflightFailed', message: 'vocabulary: id 5 differs' } });
      expect(await handle.query(statusQuery)).toMatchObject({ checks: [{ name: 'vocabulary', ok: false }] });
    });
  });

  it.each([[null], ['garbage'], [{ agent: 'turn' }], [{ ...INPUT, promot: true }], [[1, 2]]])(
    'input %j fails the run by name',
    async (input) => {
      await run({}, (handle) => expect(handle.result()).rejects.toMatchObject({ cause: { type: 'BadRunInput' } }), input);
    },
  );

  it("a failure inside a child is the run's own, by name", async () => {
    const closeEvaluation = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('none of 2 trials was executed', 'NothingExecuted');
    };
    await run({ closeEvaluation }, (handle) =>
      expect(handle.result()).rejects.toMatchObject({ cause: { type: 'NothingExecuted', message: 'none of 2 trials was executed' } }),
    );
  });

  it('a teacher no better than the student waits for a person', async () => {
    await run({ compareTeacher: async () => evidence(0.05) }, async (handle) => {
      await waitsFor(handle, 'teacher');
      await handle.executeUpdate('continueAnyway', { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
  });
});
