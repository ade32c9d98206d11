import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../core/measures/usage.ts';
import { statusQuery } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { pinned, playedIn, stepResult, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { INPUT, notingIn, serverOfFile, startIn } from './runs.ts';

const run = startIn(serverOfFile(localServer));

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
    const noting = notingIn(calls);
    const { trainBatch, saveSampler, saveState } = fakeActivities();
    const activities: Partial<AllActivities> = {
      trainBatch: noting(
        ({ step, sampler, training, trials }) => `train ${step} on ${sampler} at ${training.at.nextSeqId}: ${trials.count}`,
        trainBatch,
      ),
      saveSampler: noting(({ name }) => `sampler ${name}`, saveSampler),
      saveState: noting(({ name }) => `state ${name}`, saveState),
    };
    const result = await run(activities, (handle) => handle.result());
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
          return trialFor(spec);
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
          if (spec.trialId.includes('-s0001-000-1')) return trialFor(spec, { spans: null });
          return trialFor(spec, spec.trialId.includes('-s0001-000-0') ? { executed: false, passed: false, reward: null } : {});
        },
        trainBatch: async (order) => {
          trainedOn = playedIn(order.trials).filter(({ score }) => score?.scored).length;
          return fakeActivities().trainBatch(order);
        },
        closeStep: async (order) => {
          meters = playedIn(order.trials).map(({ trial }) => trial.meters);
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

describe('ends early', () => {
  it('a tripwire kill ends the run before the bad weights are saved or sampled', async () => {
    const saved: string[] = [];
    const closeStep: AllActivities['closeStep'] = async (order) =>
      stepResult(order, order.step === 2 ? { kill: 'entropy at 0.1 of its first value' } : {});
    const saveState = notingIn(saved)(({ name }) => name, fakeActivities().saveState);
    const result = await run({ resolveRun: async () => pinned({}, { steps: 4 }), closeStep, saveState }, (handle) => handle.result());
    expect(result).toMatchObject({ outcome: 'stopped by tripwire', verdict: null, adapter: null });
    expect(saved).toEqual(['step-0001']);
  });

  it('the second empty batch in a row stops the run', async () => {
    const closeStep: AllActivities['closeStep'] = async (order) => {
      const { emptyStreak } = order.guard;
      return stepResult(order, { guard: { ...order.guard, emptyStreak: emptyStreak + 1 }, starved: emptyStreak === 1 });
    };
    const result = await run({ resolveRun: async () => pinned({}, { steps: 9 }), closeStep }, (handle) => handle.result());
    expect(result).toMatchObject({ outcome: 'stopped: nothing to train on' });
  });

  it('a broken benchmark ends the run before a model is asked', async () => {
    let asked = 0;
    const checkSandbox = async () => [{ name: 'dry-run trial', ok: false, detail: 'task a: no reward', numbers: {} }];
    const checkModels = async () => {
      asked += 1;
      return { checks: [], usage: NO_USAGE };
    };
    await run({ checkSandbox, checkModels }, async (handle) => {
      await expect(handle.result()).rejects.toMatchObject({
        cause: { type: 'PreflightFailed', message: 'dry-run trial: task a: no reward' },
      });
      expect((await handle.query(statusQuery)).spend).toMatchObject({ usd: 0 });
    });
    expect(asked).toBe(0);
  });

  it('a failed preflight check fails the run by name, with the check in the status', async () => {
    const checks = [{ name: 'vocabulary', ok: false, detail: 'id 5 differs', numbers: { id: 5 } }];
    const checkModels = async () => ({ checks, usage: NO_USAGE });
    await run({ checkModels }, async (handle) => {
      await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'PreflightFailed', message: 'vocabulary: id 5 differs' } });
      expect(await handle.query(statusQuery)).toMatchObject({
        checks: [
          { name: 'dry-run trial', ok: true },
          { name: 'vocabulary', ok: false },
        ],
      });
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
});
