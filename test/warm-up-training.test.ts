import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { ModelAccess } from '../activities/model-access.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { createTrainingActivities } from '../activities/training.ts';
import { createWarmupActivities } from '../activities/warm-up.ts';
import { createWarmupTrainingActivities, type WarmupOrder, type WarmupTrained } from '../activities/warm-up-training.ts';
import type { TrialId } from '../core/ids.ts';
import type { TrainingRef } from '../core/run/results.ts';
import { trialOf } from '../core/run/testing/facts.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import { accessTo } from './support/access.ts';
import { TrainerFixture } from './trainer-fixture.ts';

let fixture: TrainerFixture;
let project: Project;
let models: ModelAccess;
beforeAll(async () => {
  fixture = await TrainerFixture.start();
});
afterAll(() => fixture.stop());
beforeEach(async () => {
  project = await Project.make();
  models = access();
});
afterEach(async () => {
  await models[Symbol.asyncDispose]();
  await project[Symbol.asyncDispose]();
});

const access = () => accessTo(fixture.trainer.url);
const ids = (text: string) => Int32Array.from(text, (char) => char.charCodeAt(0));
const COMMAND = 'cp sun map\n';

/** A training of a new student, and a set of one episode in which the teacher wrote `COMMAND`. */
async function ready(learningRate: string) {
  const { records, blobs, objects, folderOf } = project;
  const config = `${CONFIG}[warmup]\nsteps = 2\nlearning_rate = ${learningRate}\n`;
  const { ref: run } = await project.resolve({ config });
  const sampled = ids(COMMAND);
  const span = { callIndex: 0, prompt: ids('task copy sun to map\n$ '), sampled, logprobs: new Float64Array(sampled.length) };
  const episode = {
    trial: 'a-w' as TrialId,
    spans: [{ ...span, stop: 'stop' as const, sampler: 'stillroom/tiny-teacher' }],
    stopReason: null,
  };
  const spans = await blobs.of('first').put(encodeEpisode(episode));
  const played = trialOf({ trialId: episode.trial, taskId: 'a', sampledTokens: sampled.length, spans });
  const activities = createWarmupActivities({ records, blobs, objects, folderOf });
  const { list } = await activities.keepTrajectories({ run, trials: await project.kept(run, [played]), areAll: true });
  const { ref: set } = await activities.gatherWarmup({ run, list });
  const training = await inActivity<TrainingRef>(() => createTrainingActivities({ records, blobs, objects, models }).openTraining({ run }));
  return { run, set, places: [0], training };
}

const inActivity = <T>(work: () => Promise<T>): Promise<T> => new MockActivityEnvironment().run(work);

const update = (order: WarmupOrder, by = models): Promise<WarmupTrained> =>
  inActivity(() => createWarmupTrainingActivities({ ...project, models: by }).trainWarmup(order));

it('an update lowers the cross-entropy of what the teacher sampled, and says what it trained on', async () => {
  const { training, ...rest } = await ready('0.02');
  const first = await update({ ...rest, update: 1, training });
  expect(first.row).toMatchObject({ update: 1, datums: 1, loss_tokens: COMMAND.length, context_tokens: 23, learning_rate: 0.02 });
  expect(first.meters).toEqual({ student_train: COMMAND.length + 23 });
  const second = await update({ ...rest, update: 2, training: first.training });
  expect(second.row.loss_nats_per_token).toBeLessThan((first.row.loss_nats_per_token ?? 0) - 0.5);
  expect(second.row.loss_nats).toBeCloseTo((second.row.loss_nats_per_token ?? 0) * COMMAND.length);
});

it('an attempt that comes again after its worker died makes no second update', async () => {
  const { training, ...rest } = await ready('0.02');
  const first = await update({ ...rest, update: 1, training });
  await using other = access();
  const again = await update({ ...rest, update: 1, training }, other);
  expect(again.row).toEqual({ ...first.row, wall_ms: again.row.wall_ms });
  expect(again.sent).toEqual(first.sent);
  expect(again.training.updates).toBe(1);
  const second = await update({ ...rest, update: 2, training: again.training }, other);
  expect(second.training.at).toMatchObject({ generation: 1, modelId: training.at.modelId, nextSeqId: training.at.nextSeqId + 4 });
  expect(second.row.loss_nats).toBeLessThan(first.row.loss_nats ?? Number.NaN);
});
