import { describe, expect, it } from 'vitest';
import { NO_USAGE, type Paid } from '../../core/measures/usage.ts';
import { evaluationOf, importedOf } from '../../core/run/testing/facts.ts';
import type { TrialSpec } from '../../core/run/trial.ts';
import { setBudgetUpdate, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { ESTIMATE, playedIn, trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, type Handle, notingIn, replay, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

const env = serverOfFile(localServer);
const start = startIn(env);
/** A run whose books are those of its trials: scores and updates are free. */
const run = <T>(activities: Partial<AllActivities>, test: (handle: Handle) => Promise<T>) =>
  start({ scoreEpisode, closeEvaluation, ...activities }, test);

/** A trial costs 3 cents, which is what its like are estimated at: each token of the fakes costs one. */
const TRIAL_USD = 0.03;
const tokens = (count: number) => ({ ...NO_USAGE, meters: { student_sample: count } });
const paid = (count: number): Paid => ({ ...tokens(count), usd: count / 100 });

/** Baselines that cost nothing, so that what is spent is what steps spend. */
const imported = { importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') } };

/** Trials that count how many of them run, and end when they may: some of them, or with `flow` all, now and from now on. */
function heldTrials(count = 3) {
  const [ids, waiting]: [string[], (() => void)[]] = [[], []];
  const seen = { running: 0, most: 0 };
  let isFree = false;
  const release = (trials = waiting.length) => {
    for (const end of waiting.splice(0, trials)) end();
  };
  const flow = () => {
    isFree = true;
    release();
  };
  const runTrial = async (spec: TrialSpec) => {
    ids.push(spec.trialId);
    seen.most = Math.max(seen.most, ++seen.running);
    if (!isFree) await new Promise<void>((resolve) => waiting.push(resolve));
    seen.running--;
    return trialFor(spec, paid(count));
  };
  /** A worker that is shut down waits for what is held. */
  return { ids, seen, runTrial, release, flow, [Symbol.dispose]: flow };
}

const raise = (handle: Handle, maxUsd: number) => handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd }] });
const status = (handle: Handle) => handle.query(statusQuery);

const scoreEpisode: AllActivities['scoreEpisode'] = async (order) => ({ ...(await fakeActivities().scoreEpisode(order)), ...paid(0) });
const closeEvaluation: AllActivities['closeEvaluation'] = async ({ label, model, trials: { count: executed } }) =>
  evaluationOf({ label, model, executed, passed: executed, ...paid(3 * executed), trialUsd: TRIAL_USD });

describe('32 trials at once', () => {
  const batch = { steps: 1, tasksPerBatch: 2, groupSize: 32, trialConcurrency: 32 };

  it('at 95 % of the budget only those start that fit; too small a raise asks again, and a large one goes on at the same point', async () => {
    // 32 + 8 trials fit; when the 95 % are reached, 32 of them are under way.
    const resolveRun = resolvedAs(imported, { ...batch, maxUsd: 40 * TRIAL_USD });
    const held = heldTrials();
    const trained: number[] = [];
    const trainBatch: AllActivities['trainBatch'] = async (order) => {
      trained.push(playedIn(order.trials).filter(({ score }) => score?.scored).length);
      return { ...(await fakeActivities().trainBatch(order)), meters: {} };
    };
    await run({ resolveRun, runTrial: held.runTrial, trainBatch }, async (handle) => {
      using _ = held;
      await expect.poll(() => held.seen.running, { timeout: 20_000 }).toBe(32);
      held.release(8);
      await expect.poll(() => held.ids.length, { timeout: 20_000 }).toBe(40);
      held.flow();
      await waitsFor(handle, 'budget');
      expect([held.ids.length, held.seen]).toEqual([40, { running: 0, most: 32 }]);
      const { spend, waitingFor, step } = await status(handle);
      expect([spend.usd, step]).toEqual([expect.closeTo(40 * TRIAL_USD), 0]);
      expect(waitingFor?.question).toMatch(/^step 1 has run 40 of 64 trials; one more may cost \$0\.03; \$1\.20 of \$1\.20 are spent/);

      await raise(handle, 40.5 * TRIAL_USD);
      await expect.poll(async () => (await status(handle)).waitingFor?.id, { timeout: 20_000 }).toBe('budget-2');
      await expect(handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 99, waitId: 'budget-1' }] })).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/budget-1 was already decided: setBudget 1\.21\d+ by tester/) },
      });
      expect([held.ids.length, (await status(handle)).spend.maxUsd]).toEqual([40, 40.5 * TRIAL_USD]);
      await raise(handle, 10);
      expect(await handle.result()).toMatchObject({
        outcome: 'accepted',
        spend: { usd: expect.closeTo((64 + 2) * TRIAL_USD), maxUsd: 10 },
      });
    });
    const steps = held.ids.filter((id) => id.includes('-s0001-'));
    expect([steps.length, new Set(steps).size, trained]).toEqual([64, 64, [64]]);
  }, 180_000);

  it('pass the cap by no more than they cost above their reservations', async () => {
    const resolveRun = resolvedAs(imported, { ...batch, maxUsd: 40 * TRIAL_USD });
    const held = heldTrials(5);
    await run({ resolveRun, runTrial: held.runTrial }, async (handle) => {
      using _ = held;
      held.flow();
      await waitsFor(handle, 'budget');
      const { usd } = (await status(handle)).spend;
      expect(usd).toBeGreaterThan(39 * TRIAL_USD);
      expect(usd).toBeLessThanOrEqual(40 * TRIAL_USD + 32 * (0.05 - TRIAL_USD) + 1e-9);
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', spend: { usd } });
    });
  });

  it('set aside what scoring and training are still going to cost', async () => {
    const resolveRun = resolvedAs(imported, { ...batch, trialConcurrency: 1, maxUsd: 10 * TRIAL_USD });
    const scoreEpisode: AllActivities['scoreEpisode'] = async (order) => ({
      ...(await fakeActivities().scoreEpisode(order)),
      ...paid(1),
      trainUsd: 0.02,
    });
    await run({ resolveRun, scoreEpisode }, async (handle) => {
      await waitsFor(handle, 'budget');
      // Each takes 4 cents and holds 2 back: after the fifth there is no room for another 3.
      expect((await status(handle)).spend.usd).toBeCloseTo(5 * 0.04);
    });
  });
});

describe('a cap that is moved while trials run', () => {
  const small = { steps: 1, tasksPerBatch: 2, groupSize: 4, trialConcurrency: 2 };

  it('upwards: nobody is asked', async () => {
    const held = heldTrials();
    await run({ resolveRun: resolvedAs(imported, { ...small, maxUsd: 2 * TRIAL_USD }), runTrial: held.runTrial }, async (handle) => {
      using _ = held;
      await expect.poll(() => held.seen.running, { timeout: 20_000 }).toBe(2);
      await raise(handle, 10);
      held.flow();
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      expect((await status(handle)).decisions).toMatchObject([{ message: 'setBudget', waitId: null }]);
      await replay(env(), handle.workflowId, `${handle.workflowId}.step-0001`);
    });
  });

  it('downwards: no trial starts that does not fit any more', async () => {
    const held = heldTrials();
    await run({ resolveRun: resolvedAs(imported, { ...small, maxUsd: 10 }), runTrial: held.runTrial }, async (handle) => {
      using _ = held;
      await expect.poll(() => held.seen.running, { timeout: 20_000 }).toBe(2);
      await raise(handle, 3 * TRIAL_USD);
      const { child } = await status(handle);
      const step = env().client.workflow.getHandle(child?.workflowId ?? '');
      const told = async () => (await step.fetchHistory()).events?.some((event) => event.workflowExecutionSignaledEventAttributes);
      await expect.poll(told, { timeout: 20_000 }).toBe(true);
      held.flow();
      await waitsFor(handle, 'budget');
      expect([held.ids.length, (await status(handle)).spend.usd]).toEqual([3, expect.closeTo(3 * TRIAL_USD)]);
    });
  });
});

describe('a run that waits at its cap', () => {
  it('saves its state first, once, and a stop there ends it with everything booked', async () => {
    const saved: string[] = [];
    const saveState = notingIn(saved)(({ name }) => name, fakeActivities().saveState);
    // A step of 4 trials costs 12 cents; of the second one, two trials fit.
    const resolveRun = resolvedAs(imported, { steps: 3, saveStateEvery: 9, maxUsd: 6 * TRIAL_USD, trialConcurrency: 1 });
    await run({ resolveRun, saveState }, async (handle) => {
      await waitsFor(handle, 'budget');
      expect([saved, (await status(handle)).resume.latest?.step]).toEqual([['step-0001'], 1]);
      await raise(handle, 6.5 * TRIAL_USD);
      await expect.poll(async () => (await status(handle)).waitingFor?.id, { timeout: 20_000 }).toBe('budget-2');
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({
        outcome: 'stopped',
        weights: { statePath: 'tinker://s/weights/step-0001' },
        spend: { usd: expect.closeTo(6 * TRIAL_USD) },
      });
    });
    expect(saved).toEqual(['step-0001']);
  });

  it('counts on what trials of its own have cost, however the estimate was', async () => {
    const estimatedUsd = { training: 1e-6, student: 1e-6, teacher: 1e-6 };
    const resolveRun = resolvedAs(imported, { steps: 3, trialConcurrency: 1, maxUsd: 0.14, reserves: { limitUsd: null, estimatedUsd } });
    await run({ resolveRun }, async (handle) => {
      await waitsFor(handle, 'budget');
      const { waitingFor, step, spend } = await status(handle);
      expect(waitingFor?.question).toMatch(/^step 2 has 4 trials to run; one more may cost \$0\.03; .* budget of \$0\.15 or more/);
      expect([step, spend.forecastUsd]).toEqual([1, expect.closeTo(3 * 0.12 + 2 * TRIAL_USD)]);
    });
  });

  it('with a limit for a trial, sets that aside', async () => {
    const { estimatedUsd } = (await resolvedAs({})({ runId: 'r', executionId: 'e', input: {} as never })).plan.reserves;
    const resolveRun = resolvedAs(imported, { steps: 1, maxUsd: 0.3, trialConcurrency: 4, reserves: { limitUsd: 0.25, estimatedUsd } });
    await run({ resolveRun }, async (handle) => {
      await waitsFor(handle, 'budget');
      expect((await status(handle)).waitingFor?.question).toMatch(/has run 2 of 4 trials; one more may cost \$0\.25/);
    });
  });

  it('raised in time, an evaluation goes on where it was as well', async () => {
    const ids: string[] = [];
    const runTrial: AllActivities['runTrial'] = async (spec) => {
      ids.push(spec.trialId);
      return trialFor(spec);
    };
    await run({ resolveRun: resolvedAs({}, { gateK: 3, steps: 1, maxUsd: 4 * TRIAL_USD }), runTrial }, async (handle) => {
      await waitsFor(handle, 'budget');
      expect((await status(handle)).waitingFor?.question).toMatch(/^the teacher evaluation has run 4 of 6 trials/);
      await raise(handle, 10);
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
      await replay(env(), handle.workflowId, `${handle.workflowId}.eval-teacher`);
    });
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('without prices', () => {
  const unpricedMeters = ['student_sample', 'teacher_prefill', 'student_train'] as const;
  const lines = unpricedMeters.map((meter) => ({ meter, tokens: 9, pricePerMtokUsd: null, usd: null }));
  const estimateRun = async () => ({ ...ESTIMATE, lines, pricedUsd: 0, unpricedMeters, fullyPriced: false });
  const tallySpend: AllActivities['tallySpend'] = async () => ({ usd: 0, blindTo: ['student_sample'], lines: lines.slice(0, 1) });
  const free = { limitUsd: null, estimatedUsd: { training: 0, student: 0, teacher: 0 } };
  const runTrial: AllActivities['runTrial'] = async (spec) => trialFor(spec, { usd: 0 });
  const closeStep: AllActivities['closeStep'] = async (order) => ({ ...(await fakeActivities().closeStep(order)), trialUsd: null });

  it('a cap holds nothing back, every view says what it cannot see, and nobody claims that nothing was spent', async () => {
    const resolveRun = resolvedAs(imported, { maxUsd: 0.01, reserves: free });
    await run({ resolveRun, estimateRun, tallySpend, runTrial, closeStep }, async (handle) => {
      const { outcome, spend } = await handle.result();
      expect([outcome, spend.usd, spend.blindTo]).toEqual(['accepted', 0, ['student_sample']]);
      expect((await status(handle)).notices).toContainEqual(expect.stringMatching(/no price for student_sample, .* cap can see them/));
      const { searchAttributes } = await handle.describe();
      expect(searchAttributes).toMatchObject({ StillroomPhase: ['ended'] });
      expect(searchAttributes).not.toHaveProperty('StillroomSpentUsd');
    });
  });

  it('says from the start what the cap is not going to see', async () => {
    const started = Promise.withResolvers<void>();
    const hanging = heldTrials();
    const runHeld: AllActivities['runTrial'] = (spec) => {
      started.resolve();
      return hanging.runTrial(spec);
    };
    await run({ resolveRun: resolvedAs(imported, { maxUsd: 1, reserves: free }), estimateRun, runTrial: runHeld }, async (handle) => {
      using _ = hanging;
      await started.promise;
      expect((await status(handle)).spend.blindTo).toEqual(['student_sample', 'student_train', 'teacher_prefill']);
    });
  });
});

it('a sum that is no number ends the run by name, instead of a cap that holds nothing back', async () => {
  const tallySpend: AllActivities['tallySpend'] = async () => ({ usd: Number.NaN, blindTo: [], lines: [] });
  await run({ tallySpend, resolveRun: resolvedAs({}, { maxUsd: 1 }) }, (handle) =>
    expect(handle.result()).rejects.toMatchObject({
      cause: { type: 'NotANumber', message: expect.stringMatching(/tallySpend holds NaN at usd/) },
    }),
  );
});
