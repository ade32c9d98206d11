import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ModelAccess } from '../activities/model-access.ts';
import { createRolloutActivities } from '../activities/rollouts.ts';
import { CONFIG, Project, TEMPLATE } from '../activities/testing/project.ts';
import { tinyRendererOf } from '../activities/testing/renderers.ts';
import { inActivity } from '../activities/testing/training.ts';
import type { TrialId } from '../core/ids.ts';
import type { TrialSpec } from '../core/run/trial.ts';
import { allKeptFiles, keptFilesOf } from '../services/blobs/trial-files.ts';
import { type Gateway, startGateway } from '../services/gateway/index.ts';
import { contentOf, HarborRunner, harborPython, RunnerDied, TrialMemory, unpackTrial } from '../services/harbor/index.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import type { SampleRequest, TinkerClient } from '../services/tinker/index.ts';
import { SANDBOX_MODE } from './harbor/setting.ts';

/** Trials as the activity runs them, in a real runner that is killed. */

const MODEL = 'stillroom/tiny-student';
const SAID = ['ls\n', 'cp sun map\n', 'done\n'];

/** A service whose agent says the three turns; what it is asked by trials of a task can be held up. */
class Service {
  readonly asked: string[] = [];
  readonly models: ModelAccess;
  /** Calls with this in their prompt wait. */
  held: { readonly text: string; readonly until: Promise<void>; readonly reached: () => void } | null = null;

  constructor() {
    const client = {
      sessionId: 's',
      capabilities: async () => ({ supportedModels: [{ modelName: MODEL, maxContextLength: 1024 }] }),
      sampler: async () => ({ sample: (request: SampleRequest) => this.sample(request) }),
      close: async () => {},
    };
    this.models = new ModelAccess(async () => client as unknown as TinkerClient);
  }

  private async sample({ prompt }: SampleRequest) {
    const text = String.fromCharCode(...prompt);
    this.asked.push(text);
    if (this.held && text.includes(this.held.text)) {
      this.held.reached();
      await this.held.until;
    }
    const tokens = Int32Array.from(SAID[text.split('$ ').length - 2] ?? 'done\n', (letter) => letter.charCodeAt(0));
    return { tokens, logprobs: new Float32Array(tokens.length).fill(-0.5), stop: 'stop', promptCacheHitTokens: 0 };
  }
}

let project: Project;
let folder: string;
let gateway: Gateway;
let runner: HarborRunner;
beforeAll(async () => {
  [project, folder] = await Promise.all([Project.make(), mkdtemp(join(tmpdir(), 'stillroom-deaths-'))]);
  await project.file('job.json', JSON.stringify({ ...TEMPLATE, environment: { ...TEMPLATE.environment, kwargs: { mode: SANDBOX_MODE } } }));
  gateway = await startGateway({ host: '127.0.0.1', port: 0 });
  const [python, home] = [await harborPython(PROJECT_ROOT), join(folder, 'home')];
  runner = await HarborRunner.start({ python, home, pluginDir: join(PROJECT_ROOT, 'harbor_plugin') });
});
afterAll(async () => {
  await runner?.close();
  await gateway?.[Symbol.asyncDispose]();
  await project?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

/** A run of its own, and its trials by task. */
async function trialsOf(runId: string, harbor: () => Promise<Pick<HarborRunner, 'run'>>, config = CONFIG) {
  const { ref } = await project.resolve({ config }, { runId, executionId: runId });
  const record = await project.records.load(ref);
  const service = new Service();
  const trialsDir = join(folder, runId);
  const { runTrial } = createRolloutActivities({
    ...project,
    models: service.models,
    rendererOf: tinyRendererOf,
    gateway,
    harbor,
    trialsDir: async () => trialsDir,
    memory: new TrialMemory({ reserveBytes: 0 }),
    runnerSecrets: [],
    tasks: project.tasks,
    drain: new AbortController().signal,
  });
  const play = (taskId: string, attempt: number) => {
    const task = record.train.find(({ id }) => id === taskId);
    const model = { kind: 'base', model: MODEL, version: MODEL } as const;
    const trialId = `${record.trialPrefix}-s0001-${taskId}` as TrialId;
    const spec = { run: ref, trialId, task, who: 'student', model, maxTurns: 5, trains: true };
    return inActivity(trialId, attempt, () => runTrial(spec as TrialSpec));
  };
  return { service, play, left: () => readdir(trialsDir).catch(() => []), record };
}

it('when the runner is killed, trials that ended are not run again, and those in flight go on with the answers that they had', async () => {
  const { service, play, left, record } = await trialsOf('killed', async () => runner);
  const ended = await play('a', 1);
  expect(ended).toMatchObject({ calls: 3, executed: true, reward: 0, replayedTokens: 0 });
  const askedForA = service.asked.length;

  const [free, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  service.held = { text: 'cp sun map', until: free.promise, reached: reached.resolve };
  const dying = play('b', 1);
  const died = expect(dying).rejects.toThrow(RunnerDied);
  await reached.promise;
  process.kill(await runner.pid(), 'SIGKILL');
  // The call that was on its way is paid for: the attempt ends when its answer is in the book.
  free.resolve();
  await died;
  expect(await left()).toEqual([]);

  service.held = null;
  const [again, next] = await Promise.all([play('a', 2), play('b', 2)]);
  expect(again).toEqual(ended);
  expect(next).toMatchObject({ calls: 3, executed: true, reward: 0, replayedTokens: SAID.join('').length, reboughtTokens: 0 });
  expect(service.asked).toHaveLength(6);
  expect(new Set(service.asked.slice(askedForA)).size).toBe(3);
  expect(askedForA).toBe(3);
  expect(await left()).toEqual([]);

  // Both failed, so what they left is kept, under their ids.
  expect((await allKeptFiles(project.objects, 'killed')).map(({ trialId }) => trialId)).toEqual([again.trialId, next.trialId]);
  const kept = (await keptFilesOf(project.objects, 'killed', next.trialId)) ?? expect.fail('nothing kept');
  expect(kept).toMatchObject({ taskId: 'b', reward: 0, executed: true, files: next.files });
  const { files } = await unpackTrial(await project.blobs.get(kept.files));
  expect(files.map(({ path }) => path)).toEqual(expect.arrayContaining(['result.json', 'trial.log', 'verifier/reward.txt']));
  const all = files.map((file) => contentOf(file).toString()).join('\n');
  expect(all).not.toMatch(/prompt_token_ids/);
  expect(record.config.harbor.keep_files).toBe('failed');
});

it('a trial whose runner dies each time is infra-failed with the cause, after three deaths', async () => {
  const dead = new RunnerDied('the harbor runner ended before it was ready (exit code 3): no module named harbor');
  const run = () => Promise.reject(dead);
  const { service, play } = await trialsOf('dead', async () => ({ run }));
  await expect(play('a', 1)).rejects.toThrow(RunnerDied);
  await expect(play('a', 2)).rejects.toThrow(RunnerDied);
  const trial = await play('a', 3);
  expect(trial).toMatchObject({ executed: false, reward: null, exceptionType: 'RunnerDied', exceptionMessage: dead.message, files: null });
  expect(service.asked).toEqual([]);
});

it.each([
  ['all', 1],
  ['none', 0],
])('of trials that failed, keep_files = "%s" keeps the files of %i', async (keep, count) => {
  const config = CONFIG.replace('[harbor]', `[harbor]\nkeep_files = "${keep}"`);
  const { play } = await trialsOf(`keep-${keep}`, async () => runner, config);
  expect((await play('a', 1)).files === null).toBe(count === 0);
  expect(await allKeptFiles(project.objects, `keep-${keep}`)).toHaveLength(count);
});
