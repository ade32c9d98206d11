import { ApplicationFailure } from '@temporalio/common';
import { beforeEach, describe, expect, it } from 'vitest';
import { NO_USAGE, type Paid } from '../../core/measures/usage.ts';
import { importedOf } from '../../core/run/testing/facts.ts';
import { statusQuery } from '../../workflows/messages.ts';
import { localServer } from './environment.ts';
import { trialFor } from './facts.ts';
import type { AllActivities } from './fake-activities.ts';
import { resolvedAs, serverOfFile, startIn, trialsUntilCancelled } from './runs.ts';

/** Runs that fail: what was paid for is booked before they do, whatever it was that failed. */

const env = serverOfFile(localServer);
const run = startIn(env);

const imported = { importedBaselines: { teacher: importedOf('teacher', 'teacher'), student: importedOf('student-before', 'student') } };
/** A token of the fakes costs one cent. */
const paid = (tokens: number): Paid => ({ ...NO_USAGE, meters: { student_sample: tokens }, usd: tokens / 100 });
const broken = async (): Promise<never> => {
  throw ApplicationFailure.nonRetryable('the weights are no longer usable', 'UnusableLogprobs');
};

const read: string[] = [];
beforeEach(() => {
  read.length = 0;
});
/** The books of each batch say 50 cents, and what the journal says of training since is 7. */
const books: Partial<AllActivities> = {
  readBatch: async ({ batch }) => {
    read.push(batch);
    return paid(50);
  },
  readTraining: async ({ training }) => {
    read.push(`training after ${training.updates}`);
    return { ...NO_USAGE, meters: { student_train: 7 } };
  },
};

describe('a child that fails', () => {
  it.each<[string, Partial<AllActivities>, object, string[], number]>([
    ['a step at a trial', { runTrial: broken }, {}, ['0123abcd-s0001', 'training after 0'], 0.57],
    ['a step at a score', { scoreEpisode: broken }, {}, ['0123abcd-s0001', 'training after 0'], 0.57],
    ['a step at its update', { trainBatch: broken }, {}, ['0123abcd-s0001', 'training after 0'], 0.57],
    ['a step at its row', { closeStep: broken }, {}, ['0123abcd-s0001', 'training after 0'], 0.57],
    // After two steps of 12 cents.
    ['the last evaluation', { closeEvaluation: broken }, {}, ['0123abcd-ea', 'training after 2'], 0.24 + 0.57],
    [
      'what the teacher plays',
      { keepTrajectories: broken },
      { warmup: { steps: 1, rolloutsPerTask: 1, loaded: false } },
      ['0123abcd-w'],
      0.5,
    ],
  ])('%s: its trials are booked as their books say, and training as its journal does', async (_, activities, plan, asked, usd) => {
    await run({ resolveRun: resolvedAs(imported, plan), ...books, ...activities }, async (handle) => {
      await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'UnusableLogprobs' } });
      expect((await handle.query(statusQuery)).spend.usd).toBeCloseTo(usd);
    });
    expect(read).toEqual(asked);
  });

  it('because somebody terminates it', async () => {
    const started = Promise.withResolvers<void>();
    await run({ resolveRun: resolvedAs(imported), ...books, runTrial: trialsUntilCancelled('-s0001', started.resolve) }, async (handle) => {
      await started.promise;
      await expect.poll(async () => (await handle.query(statusQuery)).child, { timeout: 20_000 }).not.toBeNull();
      await env().client.workflow.getHandle(`${handle.workflowId}.step-0001`).terminate('a test');
      await expect(handle.result()).rejects.toThrow();
      expect((await handle.query(statusQuery)).spend.usd).toBeCloseTo(0.57);
    });
  });
});

it('an update of the warm-up that fails is booked as its journal says, beside what was booked before', async () => {
  const plan = { warmup: { steps: 2, rolloutsPerTask: 1, loaded: true } };
  await run({ resolveRun: resolvedAs(imported, plan), ...books, trainWarmup: broken }, async (handle) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'UnusableLogprobs' } });
    expect((await handle.query(statusQuery)).spend.usd).toBeCloseTo(0.07);
  });
  expect(read).toEqual(['training after 0']);
});

it('a run that fails before it is resolved books nothing, one that goes well reads no books', async () => {
  await run({ resolveRun: broken, ...books }, (handle) => expect(handle.result()).rejects.toThrow());
  await run({ resolveRun: resolvedAs(imported), ...books, runTrial: async (spec) => trialFor(spec) }, async (handle) =>
    expect(await handle.result()).toMatchObject({ outcome: 'accepted' }),
  );
  expect(read).toEqual([]);
});

it('where even the books cannot be read, the run fails as what failed first, and says so', async () => {
  const readBatch = async (): Promise<never> => {
    throw ApplicationFailure.nonRetryable('the book is torn');
  };
  await run({ resolveRun: resolvedAs(imported), ...books, readBatch, runTrial: broken }, async (handle) => {
    await expect(handle.result()).rejects.toMatchObject({ cause: { type: 'UnusableLogprobs' } });
    expect((await handle.query(statusQuery)).notices).toContainEqual('not all that was paid for could be booked: the book is torn');
  });
});
