import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { ModelAccess } from '../activities/model-access.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { createTrainingActivities } from '../activities/training.ts';
import { createWarmupActivities } from '../activities/warm-up.ts';
import { createWarmupTrainingActivities, type WarmupOrder, type WarmupTrained } from '../activities/warm-up-training.ts';
import type { TrialId } from '../core/ids.ts';
import type { TrainingRef } from '../core/run/results.ts';
import { trialOf } from '../core/run/testing/facts.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import { TinkerClient } from '../services/tinker/index.ts';
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

const access = () => new ModelAccess(() => TinkerClient.connect({ baseUrl: fixture.trainer.url, apiKey: 'tml-local-test' }));
const ids = (text: string) => Int32Array.from(text, (char) => char.charCodeAt(0));
const COMMAND = 'cp sun map\n';

/** A training of a new student, and a set of one episode in which the teacher wrote `COMMAND`. */
async function ready(learningRate: string) {
  const { records, blobs, folderOf } = project;
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
  const activities = createWarmupActivities({ records, blobs, folderOf });
  const { list } = await activities.keepTrajectories({ run, trials: await project.kept(run, [played]) });
  const { ref: set } = await activities.gatherWarmup({ run, list });
  const opened = () => inActivity<TrainingRef>(() => createTrainingActivities({ records, blobs, models }).openTraining({ run }));
  return { run, set, places: [0], training: await opened(), opened };
}

const inActivity = <T>(work: () => Promise<T>): Promise<T> => new MockActivityEnvironment().run(work);

const update = (order: WarmupOrder, by = models): Promise<WarmupTrained> =>
  inActivity(() => createWarmupTrainingActivities({ records: project.records, blobs: project.blobs, models: by }).trainWarmup(order));

it('an update lowers the cross-entropy of what the teacher sampled, and says what it trained on', async () => {
  const { training, opened: _, ...rest } = await ready('0.02');
  const first = await update({ ...rest, update: 1, training });
  expect(first.row).toMatchObject({ update: 1, datums: 1, loss_tokens: COMMAND.length, context_tokens: 23, learning_rate: 0.02 });
  expect(first.meters).toEqual({ student_train: COMMAND.length + 23 });
  const second = await update({ ...rest, update: 2, training: { ...training, nextSeqId: first.nextSeqId } });
  expect(second.row.loss_nats_per_token).toBeLessThan((first.row.loss_nats_per_token ?? 0) - 0.5);
  expect(second.row.loss_nats).toBeCloseTo((second.row.loss_nats_per_token ?? 0) * COMMAND.length);
});

it('an attempt that comes again after its worker died makes no second update', async () => {
  const { training, opened, ...rest } = await ready('0.02');
  const twin = await opened(); // the same new student again
  const next = (of: TrainingRef, { nextSeqId }: WarmupTrained) => ({ ...rest, update: 2, training: { ...of, nextSeqId } });
  const once = await update({ ...rest, update: 1, training });
  const first = await update({ ...rest, update: 1, training: twin });
  await using other = access();
  const again = await update({ ...rest, update: 1, training: twin }, other);
  expect(again.row).toEqual({ ...first.row, wall_ms: again.row.wall_ms });
  expect(again.nextSeqId).toBe(first.nextSeqId);
  const [plain, repeated] = [await update(next(training, once)), await update(next(twin, again), other)];
  expect(plain.row.loss_nats).toBeLessThan(once.row.loss_nats ?? Number.NaN);
  expect(repeated.row.loss_nats).toBe(plain.row.loss_nats);
});
