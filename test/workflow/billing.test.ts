import { ApplicationFailure } from '@temporalio/common';
import { describe, expect, it } from 'vitest';
import { NO_USAGE } from '../../core/measures/usage.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import { resumeUpdate, setBudgetUpdate, statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, resolvedAs, serverOfFile, startIn, waitsFor } from './runs.ts';

const run = startIn(serverOfFile(localServer));

const imported = { importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') } };
const pause = (...details: unknown[]) =>
  ApplicationFailure.nonRetryable('the service asks for payment (402: top up)', 'BillingPaused', ...details);

/** The fakes, with what they are called with written down; `refuse` says which call the service wants payment for, until it is paid. */
function refusing(refuse: (call: string) => boolean) {
  const calls: string[] = [];
  const state = { paid: false };
  const fake = fakeActivities();
  const noted =
    <Order, R>(told: (order: Order) => string, work: (order: Order) => Promise<R>) =>
    async (order: Order): Promise<R> => {
      const call = told(order);
      if (!state.paid && refuse(call)) {
        calls.push(`${call} refused`);
        throw pause({ ...NO_USAGE, meters: { student_sample: 2 }, usd: 0.02 });
      }
      calls.push(call);
      return work(order);
    };
  const activities: Partial<AllActivities> = {
    checkModels: noted(() => 'preflight', fake.checkModels),
    runTrial: noted(({ trialId }) => `trial ${trialId.slice(9)}`, fake.runTrial),
    scoreEpisode: noted(({ trialId }) => `score ${trialId.slice(9)}`, fake.scoreEpisode),
    openTraining: noted(() => 'open', fake.openTraining),
    trainBatch: noted(({ step, training }) => `train ${step} after ${training.updates}`, fake.trainBatch),
    trainWarmup: noted(({ update, training }) => `update ${update} after ${training.updates}`, fake.trainWarmup),
    saveSampler: noted(({ name }) => `sampler ${name}`, fake.saveSampler),
    saveState: noted(({ name }) => `state ${name}`, fake.saveState),
  };
  return { calls, state, activities };
}

const one = { steps: 1, trialConcurrency: 1 };

describe('a service that wants payment', () => {
  it.each([
    ['before anything', 'preflight'],
    ['for a trial', 'trial s0001-000-1'],
    ['for a score', 'score s0001-000-1'],
    ['for an update', 'train 1 after 2'],
    ['for a sampler', 'sampler step-0000'],
    ['for a state', 'state step-0001'],
    ['for the model', 'open'],
    ['for an evaluation', 'trial ea-001-0'],
    ['for what the teacher plays', 'trial w-001-0'],
    ['for an update of the warm-up', 'update 2 after 1'],
  ])('%s is waited for, and the very same is done again: nothing else is', async (_, refused) => {
    const { calls, state, activities } = refusing((call) => call === refused);
    const warmup = { steps: 2, rolloutsPerTask: 1, loaded: false };
    await run({ ...activities, resolveRun: resolvedAs(imported, { ...one, warmup }) }, async (handle) => {
      await waitsFor(handle, 'billing');
      const { waitingFor } = await handle.query(statusQuery);
      expect(waitingFor?.question).toMatch(/^The service wants payment: .*\(402: top up\)/);
      expect(waitingFor?.answers.map((command) => / --name (\w+) /.exec(command)?.[1])).toEqual(['resume', 'stop']);
      state.paid = true;
      await handle.executeUpdate(resumeUpdate, { args: [{ ...ask, waitId: waitingFor?.id }] });
      await expect(handle.executeUpdate(resumeUpdate, { args: [ask] })).rejects.toMatchObject({
        cause: { message: expect.stringMatching(/not paused; it was resumed already: resume by tester/) },
      });
      expect(await handle.result()).toMatchObject({ outcome: 'accepted' });
    });
    const done = calls.filter((call) => !call.endsWith('refused'));
    expect(done.length).toBe(new Set(done).size);
    expect(done).toContain(refused);
    expect(calls).toContain(`${refused} refused`);
  });
});

it('one that is not paid is asked for again; a new budget goes on as well', async () => {
  const { state, activities } = refusing((call) => call === 'train 1 after 0');
  await run({ ...activities, resolveRun: resolvedAs(imported, one) }, async (handle) => {
    await waitsFor(handle, 'billing');
    await handle.executeUpdate(resumeUpdate, { args: [ask] });
    await expect.poll(async () => (await handle.query(statusQuery)).waitingFor?.id, { timeout: 20_000 }).toBe('billing-2');
    state.paid = true;
    await handle.executeUpdate(setBudgetUpdate, { args: [{ ...ask, maxUsd: 50 }] });
    expect(await handle.result()).toMatchObject({ outcome: 'accepted', spend: { maxUsd: 50 } });
  });
});

it('a stop while a trial waits for it books what was taken, that of the broken-off trial included', async () => {
  const { activities } = refusing((call) => call === 'trial s0001-001-0');
  await run({ ...activities, resolveRun: resolvedAs(imported, one) }, async (handle) => {
    await waitsFor(handle, 'billing');
    const { spend } = await handle.query(statusQuery);
    expect(spend.usd).toBeCloseTo(2 * (0.03 + 0.09) + 0.02); // two trials with their scores, and two tokens
    await handle.executeUpdate(stopUpdate, { args: [ask] });
    expect(await handle.result()).toMatchObject({ outcome: 'stopped', spend: { usd: spend.usd } });
  });
});

it('weights that an unfinished update has touched are neither saved before the wait nor at a stop', async () => {
  const { calls, activities } = refusing((call) => call.startsWith('train 2'));
  await run({ ...activities, resolveRun: resolvedAs(imported, { ...one, steps: 2 }) }, async (handle) => {
    await waitsFor(handle, 'billing');
    await handle.executeUpdate(stopUpdate, { args: [ask] });
    expect(await handle.result()).toMatchObject({ outcome: 'stopped', weights: null, resume: { latest: { step: 1 } } });
    expect((await handle.query(statusQuery)).notices.at(-1)).toMatch(/update was not finished, .* last saved state is .*step-0001/);
  });
  const update = calls.findIndex((call) => call.startsWith('train 2'));
  expect(calls.slice(update + 1)).toEqual([]);
});

it('a stop ends a run whose last weights the service will not save without payment, and says what was saved', async () => {
  const { activities } = refusing((call) => /^trial s0003|^state step-0002|^sampler step-0002/.test(call));
  const resolveRun = resolvedAs(imported, { steps: 3, trialConcurrency: 1, saveStateEvery: 1, samplerRefreshEvery: 9 });
  await run({ ...activities, resolveRun }, async (handle) => {
    await waitsFor(handle, 'billing');
    await handle.executeUpdate(stopUpdate, { args: [ask] });
    expect(await handle.result()).toMatchObject({ outcome: 'stopped', weights: null });
    expect((await handle.query(statusQuery)).notices.at(-1)).toMatch(/last weights could not be saved: .* last saved state is .*step-0001/);
  });
});

it('a run that is cancelled while it waits ends as cancelled', async () => {
  const { activities } = refusing((call) => call.startsWith('update 1'));
  const warmup = { steps: 2, rolloutsPerTask: 1, loaded: true };
  await run({ ...activities, resolveRun: resolvedAs(imported, { ...one, warmup }) }, async (handle) => {
    await waitsFor(handle, 'billing');
    await handle.cancel();
    await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
  });
});
