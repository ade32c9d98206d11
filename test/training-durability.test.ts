import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Crash, type Death, dyingAt } from '../activities/testing/crashing-store.ts';
import { CONFIG, failureOf, Project } from '../activities/testing/project.ts';
import { type InAttempt, inActivity, type Trained, threeSteps, trainAll } from '../activities/testing/training.ts';
import { createTrainingActivities } from '../activities/training.ts';
import type { BlobRef, StatePath } from '../core/ids.ts';
import type { RuleInput } from '../trainer/faults/plan.ts';
import { accessTo } from './support/access.ts';
import { firedBy, on, putFaults } from './support/faults.ts';
import { withFaultyTrainer } from './support/faulty-trainer.ts';
import type { TrainerFixture } from './trainer-fixture.ts';

/** Training activities against the real trainer: whatever happens between them, what is trained is the same to the last bit. */

let fixture: TrainerFixture;
let url: string;
withFaultyTrainer((started) => {
  fixture = started;
  url = started.trainer.url;
});

const TRAINING = CONFIG.replace('steps = 3', 'steps = 3\nnum_substeps = 2\nlearning_rate = 0.01');

/** A run of three batches of two updates each, in a store of its own. Its seeds follow from its id, which is always the same. */
async function newRun() {
  const project = await Project.make();
  const { ref: run } = await project.resolve({ config: TRAINING });
  const wishes = await threeSteps(project.blobs, 'first');
  return { project, run, wishes };
}

type Run = Awaited<ReturnType<typeof newRun>>;

/** Attempts at activities, one after the other until one does it; the nth of all dies as the nth of `deaths` says. */
function attemptsOf(
  { project }: Run,
  deaths: readonly (Death | undefined)[] = [],
  before: (activityId: string) => Promise<void> = async () => {},
): InAttempt {
  let attempts = 0;
  return async (activityId, work) => {
    await before(activityId);
    for (let attempt = 1; ; attempt++) {
      await using models = accessTo(url, { noProgressMs: 2_000 });
      const activities = createTrainingActivities({ ...project, objects: dyingAt(project.objects, deaths[attempts++]), models });
      try {
        return await inActivity(activityId, attempt, () => work(activities));
      } catch (error) {
        if (!(error instanceof Crash)) throw error;
      }
    }
  };
}

/** What the final weights say of a text: equal numbers only from equal weights. */
async function scoresOf({ paths }: Trained) {
  return fixture.scores(await fixture.sampler({ model_path: paths.at(-1) ?? '' }), 'files sun\n$ cp sun map\n');
}

let calm: Trained;
let calmScores: readonly number[];
beforeAll(async () => {
  const run = await newRun();
  calm = await trainAll(run.run, run.wishes, attemptsOf(run));
  calmScores = await scoresOf(calm);
  await run.project[Symbol.asyncDispose]();
});
let run: Run;
beforeEach(async () => {
  run = await newRun();
  return () => run.project[Symbol.asyncDispose]();
});

async function expectSame(shaken: Trained): Promise<void> {
  expect(shaken.losses).toEqual(calm.losses);
  expect(shaken.gradNorms).toEqual(calm.gradNorms);
  expect(await scoresOf(shaken)).toEqual(calmScores);
  expect(shaken.training.updates).toBe(6);
}

it('an undisturbed training makes each call of one model, and its losses fall', () => {
  expect(calm).toMatchObject({ notices: [], lostTokens: 0, training: { at: { generation: 1 } } });
  expect(calm.losses).toHaveLength(6);
  expect(calm.meteredTokens).toBe(calm.trainedTokens);
});

describe('processes die', () => {
  // Of a batch: 0 takeover, 1 intent, 2 sent, 3 done, 4 intent of the update, 5 sent, 6 done, and so on.
  it.each<[string, Death, number]>([
    ['between a gradient’s intent and its sending', { write: 1, afterIt: true }, 2],
    ['after the service took an update, before its request id is kept', { write: 5, afterIt: false }, 2],
    ['after an update’s request id is kept', { write: 5, afterIt: true }, 1],
    ['after an update is done, before the activity says so', { write: 12, afterIt: true }, 1],
  ])('%s', async (_, death, generation) => {
    // Attempts: open, sampler, batch 1, state, batch 2.
    const shaken = await trainAll(run.run, run.wishes, attemptsOf(run, [undefined, undefined, undefined, undefined, death]));
    await expectSame(shaken);
    expect(shaken.training.at.generation).toBe(generation);
    expect(shaken.notices).toHaveLength(generation - 1);
    if (generation === 2)
      expect(shaken.notices[0]).toMatch(/rebuilt from tinker:.*weights\/step-0001 \(nobody knows.*no batch trained again/);
  });

  it.each<[string, Death]>([
    ['before it is known to be done', { write: 6, afterIt: false }],
    ['after it is known to be done', { write: 6, afterIt: true }],
  ])('right after a save, %s: nothing is trained twice, and its name is still free', async (_, death) => {
    // A save of state: 0 takeover, 1–3 the probe, 4–6 the save.
    const shaken = await trainAll(run.run, run.wishes, attemptsOf(run, [undefined, undefined, undefined, death, death]));
    await expectSame(shaken);
    expect(shaken.training.at.generation).toBe(1);
  });

  it('again and again, at every third write of the journal', async () => {
    const deaths = [2, 5, 8, 3, 6, 1, 4, 7, 2, 5, 9, 3, 1, 6, 4].map((write, i) => ({ write, afterIt: i % 2 === 0 }));
    await expectSame(await trainAll(run.run, run.wishes, attemptsOf(run, deaths)));
  });
});

it('an activity that times out after the service has made its update: the next attempt waits for that update, the first one’s answer is refused', async () => {
  await putFaults(url, on('retrieve_future', { kind: 'pending', ms: 1_500 }, { for: 'OptimStep' }));
  const attempt = attemptsOf(run);
  let first: Promise<string> | null = null;
  const shaken = await trainAll(run.run, run.wishes, async (activityId, work) => {
    if (activityId !== 'wish-1') return attempt(activityId, work);
    const models = accessTo(url);
    const activities = createTrainingActivities({ ...run.project, models });
    first = inActivity(activityId, 1, () => work(activities)).then(
      () => 'it answered',
      (error: Error) => error.name,
    );
    await expect.poll(async () => (await firedBy(url))[0], { timeout: 20_000 }).toBeGreaterThan(0);
    return inActivity(activityId, 2, () => work(activities)).finally(() => models[Symbol.asyncDispose]());
  });
  expect(await first).toBe('StaleAttempt');
  await expectSame(shaken);
  expect(shaken.training.at.generation).toBe(1);
});

describe('the service', () => {
  /** Puts a fault in force before the second batch. */
  const troubled = async (...rules: readonly RuleInput[]) =>
    trainAll(
      run.run,
      run.wishes,
      attemptsOf(run, [], async (activityId) => {
        if (activityId === 'wish-3') await putFaults(url, ...rules);
      }),
    );

  it.each<[string, RuleInput]>([
    ['loses the model', on('forward_backward', { kind: 'lost_model', status: 404 })],
    ['loses the session while an update is pending', on('retrieve_future', { kind: 'lost_session', status: 410 }, { for: 'OptimStep' })],
    ['forgets a result', on('retrieve_future', { kind: 'status', status: 410 }, { for: 'ForwardBackward', nth: 2 })],
    ['loses the model before a save', on('save_weights', { kind: 'lost_model', status: 410 })],
  ])('%s: it is rebuilt, and the run says so', async (_, rule) => {
    const shaken = await troubled(rule);
    await expectSame(shaken);
    expect(shaken.training.at.generation).toBe(2);
    expect(shaken.notices).toEqual([
      expect.stringMatching(/^training was rebuilt from tinker:.*weights\/step-0001 \(.*: .* tokens, .* price$/),
    ]);
    expect(shaken.trainedTokens).toBeGreaterThan(calm.trainedTokens);
    expect(shaken.lostTokens).toBe(0);
  });

  it('restores no moments: the run goes on, and says that they are cold', async () => {
    const shaken = await troubled(on('load_weights', { kind: 'drop_moments' }), on('save_weights', { kind: 'lost_model', status: 404 }));
    expect(shaken.notices).toEqual([expect.stringMatching(/2 batches trained again.*optimizer moments are cold/)]);
    expect(shaken.losses).toEqual(calm.losses);
  });

  it('loses every model: the training is lost, by name', async () => {
    const lost = troubled(on('forward_backward', { kind: 'lost_model', status: 404 }, { times: 'always' }));
    const failure = await failureOf(lost);
    expect(failure).toMatchObject({ type: 'TrainingLost', nonRetryable: true });
    expect(failure.message).toMatch(/lost 5 times in a row.*start a new run/);
  });

  it.each<[string, RuleInput]>([
    ['a call', on('optim_step', { kind: 'status', status: 402 })],
    ['the wait for one', on('retrieve_future', { kind: 'status', status: 402 }, { for: 'OptimStep' })],
  ])('wants money for %s: after it the very same call is waited for', async (_, rule) => {
    await putFaults(url);
    const attempt = attemptsOf(run);
    const shaken = await trainAll(run.run, run.wishes, async (activityId, work) => {
      if (activityId !== 'wish-3') return attempt(activityId, work);
      await putFaults(url, rule);
      await expect(attempt(activityId, work)).rejects.toMatchObject({ type: 'BillingPaused' });
      return attempt(activityId, work);
    });
    await expectSame(shaken);
    expect(shaken).toMatchObject({ notices: [], training: { at: { generation: 1 } } });
    expect(shaken.trainedTokens).toBe(calm.trainedTokens);
  });
});

it('a base that the service does not have is nothing to start from', async () => {
  await using models = accessTo(url);
  const { openTraining } = createTrainingActivities({ ...run.project, models });
  const statePath = 'tinker://gone:train:0/weights/none' as StatePath;
  const failure = await failureOf(inActivity('open', 1, () => openTraining({ run: run.run as BlobRef, base: { statePath, updates: 9 } })));
  expect(failure).toMatchObject({ type: 'TrainingLost', message: expect.stringContaining(statePath) });
});
