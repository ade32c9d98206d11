import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MockActivityEnvironment } from '@temporalio/testing';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { createCheckpointActivities } from '../activities/checkpoints.ts';
import { ModelAccess } from '../activities/model-access.ts';
import { CONFIG, Project } from '../activities/testing/project.ts';
import { createTrainingActivities } from '../activities/training.ts';
import type { SavedPath } from '../core/training/checkpoint-ledger.ts';
import type { TendPlan } from '../core/training/checkpoint-lives.ts';
import { RetryLater, TinkerClient } from '../services/tinker/index.ts';
import { startTrainer } from '../trainer/service/start.ts';
import { untrainedWeights } from './trainer-process.ts';

/** The activities of a run's checkpoints against the real service, whose clock the test turns. */

const START_MS = Date.parse('2026-01-01T00:00:00Z');
const HOUR_MS = 3_600_000;
const [HOUR_S, NOTHING]: [number, TendPlan] = [3600, { look: [], renew: [], remove: [] }];

const folder = mkdtempSync(join(tmpdir(), 'checkpoint-lives-'));
const weights = untrainedWeights();
let nowMs = START_MS;
let trainer: Awaited<ReturnType<typeof startTrainer>>;
let project: Project;
let models: ModelAccess;

beforeAll(async () => {
  const stateFolder = join(folder, 'state');
  mkdirSync(stateFolder);
  const files = ['tiny-teacher', 'tiny-student'].map((name) => ({
    name: `stillroom/${name}`,
    weightsPath: join(weights, `${name}.safetensors`),
  }));
  const fatal = (reason: unknown) => {
    throw reason;
  };
  trainer = await startTrainer({
    port: 0,
    stateFolder,
    models: files,
    keys: { prefix: 'tml-' },
    faults: null,
    callLogFile: null,
    now: () => new Date(nowMs),
    onFatal: fatal,
  });
});
afterAll(async () => {
  await trainer.stop();
  for (const made of [folder, weights]) rmSync(made, { recursive: true });
});
beforeEach(async () => {
  nowMs = START_MS;
  project = await Project.make();
  models = new ModelAccess(() => TinkerClient.connect({ baseUrl: trainer.url, apiKey: 'tml-local-test' }));
});
afterEach(async () => {
  await models[Symbol.asyncDispose]();
  await project[Symbol.asyncDispose]();
});

const inActivity = <T>(work: () => Promise<T>): Promise<T> => new MockActivityEnvironment().run(work);
const tend = (plan: Partial<TendPlan>) => inActivity(() => createCheckpointActivities({ models }).tendCheckpoints({ ...NOTHING, ...plan }));
const at = (hours: number) => START_MS + hours * HOUR_MS;

/** A new student, with a state and a sampler saved. */
async function saved(config: string) {
  const { ref: run } = await project.resolve({ config });
  const { records, blobs, objects } = project;
  const training = createTrainingActivities({ records, blobs, objects, models });
  const opened = await inActivity(() => training.openTraining({ run }));
  const state = await inActivity(() => training.saveState({ run, training: opened, name: 'step-0001' }));
  const sampler = await inActivity(() => training.saveSampler({ run, training: state.training, name: 'step-0001' }));
  return { statePath: state.path, samplerPath: sampler.path };
}

const withLife = (hours: number) => `${CONFIG}[checkpoints]\nttl_days = ${hours / 24}\n`;
const sample = (samplerPath: Awaited<ReturnType<typeof saved>>['samplerPath']) =>
  models.withSampler({ kind: 'sampler', model: 'stillroom/tiny-student', path: samplerPath, version: 'step-0001' }, (sampler) =>
    sampler.sample({ prompt: Int32Array.from([36, 32]), maxTokens: 2, temperature: 1, seed: 1, stopTokens: [] }),
  );

it('saves ask for the life of the config, and for none where it has none', async () => {
  const { statePath, samplerPath } = await saved(withLife(2));
  const { found } = await tend({ look: [statePath, samplerPath] });
  expect(found).toEqual([
    { path: statePath, isListed: true, expires: at(2) },
    { path: samplerPath, isListed: true, expires: at(2) },
  ]);
  const kept = await saved(CONFIG);
  expect((await tend({ look: [kept.statePath] })).found).toEqual([{ path: kept.statePath, isListed: true, expires: null }]);
});

it('a renewal counts from now; without one the checkpoint is gone, for the list and for samplers', async () => {
  const { statePath, samplerPath } = await saved(withLife(2));
  await sample(samplerPath);
  nowMs = at(1);
  const renewed = await tend({ renew: [{ path: statePath, ttlSeconds: 5 * HOUR_S, isCut: false }] });
  expect(renewed).toEqual({
    renewed: [{ path: statePath, outcome: 'done', words: '' }],
    removed: [],
    found: [{ path: statePath, isListed: true, expires: at(6) }],
    isListRead: true,
  });
  nowMs = at(2);
  const order = { renew: [{ path: samplerPath, ttlSeconds: null, isCut: false }], look: [statePath] };
  const { renewed: late, found } = await tend(order);
  expect(late).toMatchObject([{ path: samplerPath, outcome: 'refused' }]);
  expect(found).toContainEqual({ path: samplerPath, isListed: false, expires: 'unknown' });
  expect(found).toContainEqual({ path: statePath, isListed: true, expires: at(6) });
  await expect(sample(samplerPath)).rejects.toThrow(/expired at 2026-01-01T02:00:00.000Z and is gone/);
});

it('a deletion that comes twice is done once, and the second finds nothing listed', async () => {
  const { statePath } = await saved(CONFIG);
  const remove: readonly SavedPath[] = [statePath];
  expect(await tend({ remove })).toMatchObject({ removed: [{ outcome: 'done' }], found: [] });
  expect(await tend({ remove })).toMatchObject({ removed: [{ outcome: 'refused' }], found: [{ path: statePath, isListed: false }] });
});

it('a service that does not answer fails nothing: what could not be done is told', async () => {
  await using dead = new ModelAccess(() => Promise.reject(new RetryLater('nobody is there', { call: 'connect' })));
  const { statePath: path } = await saved(CONFIG);
  const order = { look: [path], renew: [{ path, ttlSeconds: null, isCut: false }], remove: [path] };
  const told = { path, outcome: 'failed', words: 'connect: nobody is there' };
  expect(await inActivity(() => createCheckpointActivities({ models: dead }).tendCheckpoints(order))).toEqual({
    renewed: [told],
    removed: [told],
    found: [],
    isListRead: false,
  });
});
