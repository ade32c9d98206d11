import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createBranchCheckActivities } from '../activities/branch-check.ts';
import { CONFIG, failureOf, Project } from '../activities/testing/project.ts';
import { inActivity, scoredBatch, threeSteps, trainAll } from '../activities/testing/training.ts';
import { createTrainingActivities } from '../activities/training.ts';
import type { Branch } from '../core/run/branch.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import { SavedStates } from '../services/blobs/saved-states.ts';
import type { StatePath } from '../services/tinker/index.ts';
import { accessTo } from './support/access.ts';
import { on, putFaults } from './support/faults.ts';
import { withFaultyTrainer } from './support/faulty-trainer.ts';
import type { TrainerFixture } from './trainer-fixture.ts';

/** Runs that start from trained weights, against the real trainer: one run has trained three steps, and others start from it. */

let fixture: TrainerFixture;
withFaultyTrainer((started) => {
  fixture = started;
});

const TRAINING = CONFIG.replace('steps = 3', 'steps = 3\nlearning_rate = 0.01');

let project: Project;
let models: ReturnType<typeof accessTo>;
/** What the first run saved last, and what its weights were then. */
let last: { readonly statePath: StatePath; readonly scores: readonly number[] };
beforeAll(async () => {
  project = await Project.make();
  models = accessTo(fixture.trainer.url);
  const { ref: run } = await project.resolve({ config: TRAINING });
  const trained = await trainAll(run, await threeSteps(project.blobs, 'first'), (id, work) =>
    inActivity(id, 1, () => work(createTrainingActivities({ ...project, models }))),
  );
  const { path = '' } = (await new SavedStates(project.objects, 'first').all()).at(-1) ?? {};
  last = { statePath: path as StatePath, scores: await scoresOf(trained.paths.at(-1) ?? '') };
  return async () => {
    await models[Symbol.asyncDispose]();
    await project[Symbol.asyncDispose]();
  };
});

/** Equal numbers only from equal weights. */
const scoresOf = async (samplerPath: string) =>
  fixture.scores(await fixture.sampler({ model_path: samplerPath }), 'files sun\n$ cp sun map\n');

let runs = 0;
const branchFrom = (from: string, config = TRAINING) => project.resolve({ config, from }, { runId: `branch-${++runs}`, executionId: 'e' });
const baseOf = ({ branch }: PinnedRun) => {
  const { statePath, updates } = branch as Branch;
  return { statePath, updates };
};
const check = ({ ref: run }: PinnedRun) =>
  inActivity('check', 1, () => createBranchCheckActivities({ ...project, models }).checkBranch({ run }));

async function openedAs(pinned: PinnedRun) {
  const activities = createTrainingActivities({ ...project, models });
  const { notice, ...training } = await inActivity('open', 1, () => activities.openTraining({ run: pinned.ref, base: baseOf(pinned) }));
  const state = await inActivity('state', 1, () => activities.saveState({ run: pinned.ref, training, name: 'step-0000' }));
  const sampler = await inActivity('sampler', 1, () =>
    activities.saveSampler({ run: pinned.ref, training: state.training, name: 'step-0000' }),
  );
  return { notice, state, sampler };
}

beforeEach(() => putFaults(fixture.trainer.url));

describe.each<[string, () => string]>([
  ['a run', () => 'first'],
  ['a step of a run', () => 'first@step-3'],
  ['a path', () => last.statePath],
])('named by %s', (_, from) => {
  it('the state is found, loaded with its moments, and is what is sampled from', async () => {
    const pinned = await branchFrom(from());
    expect(pinned.branch?.statePath).toBe(last.statePath);
    expect(await check(pinned)).toMatchObject({ ok: true, detail: expect.stringContaining(last.statePath), numbers: { loraRank: 32 } });
    const { notice, sampler } = await openedAs(pinned);
    expect(notice).toBe(`training starts from ${last.statePath}, with its optimizer moments`);
    expect(await scoresOf(sampler.path)).toEqual(last.scores);
  });
});

it('what it saved at once is its own: it is rebuilt from that, and can be started from in turn', async () => {
  const pinned = await branchFrom('first');
  const { state } = await openedAs(pinned);
  await putFaults(fixture.trainer.url, on('forward_backward', { kind: 'lost_model', status: 404 }));
  const activities = createTrainingActivities({ ...project, models });
  const trials = await scoredBatch(project.blobs, pinned.runId, 1);
  const order = { run: pinned.ref, step: 1, sampler: 'step-0000', training: state.training, trials };
  const { notices, training } = await inActivity('train', 1, () => activities.trainBatch(order));
  expect(notices).toEqual([expect.stringContaining(`training was rebuilt from ${state.path}`)]);
  expect(training.updates).toBe((pinned.branch?.updates ?? 0) + 1);
  expect((await branchFrom(pinned.runId)).branch).toMatchObject({
    statePath: state.path,
    source: { runId: pinned.runId, state: 'step-0000' },
  });
});

it('a service that restores no moments: the weights are loaded without, and the run says so', async () => {
  const pinned = await branchFrom('first');
  await putFaults(fixture.trainer.url, on('load_weights', { kind: 'status', status: 400 }));
  const { notice, sampler } = await openedAs(pinned);
  expect(notice).toMatch(/without its optimizer moments, which the service did not restore/);
  expect(await scoresOf(sampler.path)).toEqual(last.scores);
});

describe('refused before anything is trained', () => {
  it('another base model or rank, where only the service knows those of a path', async () => {
    const pinned = await branchFrom(last.statePath, TRAINING.replace('[student]', '[student]\nlora_rank = 4'));
    expect(await check(pinned)).toMatchObject({ ok: false, detail: expect.stringMatching(/lora_rank is 4, and the saved state has 32/) });
  });

  it('a state that is gone: the check says so, and so does the loading if it went since', async () => {
    const pinned = await branchFrom('first@step-1');
    const base = baseOf(pinned);
    await models.withClient((client) => client.checkpoints.delete(base.statePath));
    expect(await check(pinned)).toMatchObject({
      ok: false,
      detail: expect.stringMatching(/does not have step-0001 of run first .*first@step-N names/),
    });
    const { openTraining } = createTrainingActivities({ ...project, models });
    const failure = await failureOf(inActivity('open', 1, () => openTraining({ run: pinned.ref, base })));
    expect(failure).toMatchObject({
      type: 'TrainingLost',
      nonRetryable: true,
      message: expect.stringMatching(/which this run starts from.*Nothing was trained/),
    });
  });
});
