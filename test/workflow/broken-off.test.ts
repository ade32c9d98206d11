import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { beforeEach, describe, expect, it } from 'vitest';
import { NO_USAGE, type Paid } from '../../core/measures/usage.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import { statusQuery, stopUpdate } from '../../workflows/messages.ts';
import { untilCancelled } from './cancelled.ts';
import { localServer } from './environment.ts';
import { trialFor } from './facts.ts';
import { type AllActivities, fakeActivities } from './fake-activities.ts';
import { ask, type Handle, replay, resolvedAs, serverOfFile, startIn } from './runs.ts';

const env = serverOfFile(localServer);
const start = startIn(env);

/** Each token of the fakes costs a cent; baselines and scores cost nothing. */
const paid = (count: number): Paid => ({ ...NO_USAGE, meters: { student_sample: count }, usd: count / 100 });
const imported = { importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') } };
const scoreEpisode: AllActivities['scoreEpisode'] = async (order) => ({ ...(await fakeActivities().scoreEpisode(order)), ...paid(0) });
const run = <T>(activities: Partial<AllActivities>, test: (handle: Handle) => Promise<T>) => start({ scoreEpisode, ...activities }, test);
const status = (handle: Handle) => handle.query(statusQuery);

/** Trials of the first step: the first one ends by itself, the next two when they are cancelled, each in its own way. */
function brokenOff(endings: readonly (() => Error)[]) {
  const started = Promise.withResolvers<void>();
  const open = [...endings];
  const runTrial: AllActivities['runTrial'] = async (spec) => {
    if (spec.trialId.endsWith('-000-0')) return trialFor(spec);
    const ending = open.shift();
    if (open.length === 0) started.resolve();
    await untilCancelled().catch(() => {});
    throw ending?.() ?? new Error('more trials than expected');
  };
  return { runTrial, started: started.promise };
}

describe('trials that a person breaks off are booked', () => {
  const tells = (count: number) => () => new CancelledFailure('cancelled', [paid(count)]);
  const isDrained = () => ApplicationFailure.retryable('this worker was told to end', 'WorkerShutdown');
  const books: string[] = [];
  const readBooks: AllActivities['readBooks'] = async ({ books: asked }) => {
    books.push(...asked.map(({ of, kind }) => `${of} ${kind}`));
    return paid(5 * asked.length);
  };
  beforeEach(() => void books.splice(0));

  const two = { steps: 1, trialConcurrency: 2 };
  const step = (handle: Handle) => `${handle.workflowId}.step-0001`;
  const running = async (handle: Handle) =>
    expect
      .poll(
        () =>
          env()
            .client.workflow.getHandle(step(handle))
            .query<object>('progress')
            .catch(() => null),
        { timeout: 20_000 },
      )
      .toMatchObject({ running: 2, done: 1 });

  it.each([
    ['stop', 'as they tell', [tells(2), tells(3)], [], 0.05],
    ['stop', 'as their books say, where an attempt ended without a word', [tells(2), isDrained], ['0123abcd-s0001-001-0 sample'], 0.07],
    ['cancel', 'as their books say, also when the run is cancelled', [isDrained, tells(2)], ['0123abcd-s0001-000-1 sample'], 0.07],
  ])('%s: %s', async (how, _, endings, untold, usd) => {
    const { runTrial, started } = brokenOff(endings);
    await run({ resolveRun: resolvedAs(imported, two), runTrial, readBooks }, async (handle) => {
      await started;
      await running(handle);
      if (how === 'stop') await handle.executeUpdate(stopUpdate, { args: [ask] });
      else await handle.cancel();
      if (how === 'stop') await handle.result();
      else await expect(handle.result()).rejects.toMatchObject({ cause: { name: 'CancelledFailure' } });
      expect(await status(handle)).toMatchObject({ outcome: 'stopped', spend: { usd: expect.closeTo(0.03 + usd) } });
      await replay(env(), handle.workflowId, step(handle));
    });
    expect(books).toEqual(untold);
  });

  it('with what is known of scores under way', async () => {
    const started = Promise.withResolvers<void>();
    const scoreEpisode: AllActivities['scoreEpisode'] = async () => {
      started.resolve();
      return untilCancelled();
    };
    const resolveRun = resolvedAs(imported, { ...two, trialConcurrency: 1 });
    await run({ resolveRun, scoreEpisode, readBooks }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', spend: { usd: expect.closeTo(0.03 + 0.05) } });
    });
    expect(books).toEqual(['0123abcd-s0001-000-0 score']);
  });

  it('the checks before a run begins are broken off and booked as well', async () => {
    const started = Promise.withResolvers<void>();
    const checkModels: AllActivities['checkModels'] = async () => {
      started.resolve();
      return untilCancelled();
    };
    await run({ resolveRun: resolvedAs(imported), checkModels, readBooks }, async (handle) => {
      await started.promise;
      await handle.executeUpdate(stopUpdate, { args: [ask] });
      expect(await handle.result()).toMatchObject({ outcome: 'stopped', spend: { usd: 0.05 } });
    });
    expect(books).toEqual(['preflight check']);
  });
});
