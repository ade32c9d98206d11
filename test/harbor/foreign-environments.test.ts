import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HarborRunner, parseJobTemplate, type RunTrialOptions, type TrialConfig, TrialCrashed } from '../../services/harbor/index.ts';
import { PLUGIN_DIR, SECRET, Setting, until } from './setting.ts';

const PLUGINS = join(import.meta.dirname, 'plugins');
/** Of the task whose author gave its sandbox all the time in the world. */
const PATIENT = '[environment]\nbuild_timeout_sec = 86400\n';

let setting: Setting;
let patientTask: string;
let hastyTask: string;
beforeAll(async () => {
  setting = await Setting.make();
  hastyTask = await setting.makeTask('hasty', '[environment]\nbuild_timeout_sec = 1\n');
  patientTask = await setting.makeTask('patient', PATIENT);
});
afterAll(() => setting?.[Symbol.asyncDispose]());

const start = (options: { silenceLimitMs?: number; env?: Record<string, string> } = {}) =>
  HarborRunner.start({ ...setting.options, ...options, env: { PYTHONPATH: `${PLUGINS}:${PLUGIN_DIR}`, ...options.env } });

/** A trial of `copy` in another environment, as a job template says it. */
function play(runner: HarborRunner, environment: object, options: Partial<RunTrialOptions> & { taskDir?: string } = {}) {
  const template = parseJobTemplate(JSON.stringify({ environment, datasets: [{ path: 'tasks' }] }), 'job.json');
  const { verifier: _, ...config } = setting.config({
    model: setting.model.model(['cp sun map']),
    ...(options.taskDir ? { taskDir: options.taskDir } : {}),
  });
  const given: TrialConfig = { ...config, environment: template.environment };
  return runner.run(given, { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: SECRET }, ...options });
}
const lab = (name: string, more: object = {}) => ({ import_path: `lab_environments:${name}`, ...more });

describe('an environment that is none of ours', () => {
  test('runs trials with all that the template says of it, graded by harbor itself', async () => {
    await using runner = await start();
    const run = await play(runner, lab('FolderEnvironment', { env: { LAB: 'yes' }, override_cpus: 1, delete: true }));
    expect(run).toMatchObject({ reward: 1, executed: true, infraFailed: false, exceptionType: null });
    expect((await readdir(tmpdir())).filter((name) => name.startsWith('folder-environment-'))).toEqual([]);
  });

  test('that this machine lacks is told at once, in the words of its own check', async () => {
    await using runner = await start({ env: { DOCKER_HOST: 'tcp://127.0.0.1:1', PATH: process.env.PATH ?? '' } });
    const docker = /^EnvironmentUnusable: environment docker cannot be used on this machine: .*Docker/;
    const own =
      /^EnvironmentUnusable: environment lab_environments:NotHere cannot be used on this machine: the lab's engine is switched off/;
    await Promise.all([
      expect(play(runner, { type: 'docker' })).rejects.toThrow(docker),
      expect(play(runner, { type: 'docker' })).rejects.toThrow(TrialCrashed),
      expect(play(runner, lab('NotHere'))).rejects.toThrow(own),
    ]);
  });
});

// Each in a runner of its own, and mostly waiting.
describe.concurrent('a sandbox that never starts', () => {
  test("ends by the task's own build time, named by harbor", async () => {
    await using runner = await start();
    const run = await play(runner, lab('NeverStarts'), { taskDir: hastyTask });
    expect(run).toMatchObject({ infraFailed: true, executed: false, exceptionType: 'EnvironmentStartTimeoutError' });
    expect(run.infraReason).toContain('Environment start timed out after 1');
  });

  test('ends by our limit where its task sets none, and says what it was doing', async () => {
    await using runner = await start();
    const pid = await runner.pid();
    const limits = { limitMs: 3_000, graceMs: 30_000 };
    const ended = play(runner, lab('NeverStarts'), { taskDir: patientTask, limits });
    await expect(ended).rejects.toThrow(
      'the trial was not over after 3 s, the most it may take in all; it was cancelled while starting its sandbox',
    );
    expect(await runner.pid()).toBe(pid);
  });

  test('is given up when it ignores that it was told to end; its runner finishes its other trials and is replaced', async () => {
    await using runner = await start();
    const pid = await runner.pid();
    const limits = { limitMs: 1_000, graceMs: 1_000 };
    const sibling = setting.run(runner, ['cp sun map', 'sleep 4']);
    const ended = play(runner, lab('IgnoresBeingTold'), { taskDir: patientTask, limits });
    await expect(ended).rejects.toThrow(
      /^the trial was not over after 1 s.* and had not ended 1 s later, so it was given up; the harbor runner is/,
    );
    expect(await runner.pid()).not.toBe(pid);
    expect(await sibling).toMatchObject({ reward: 1 });
    await until('the old runner ends', async () => !isAlive(pid));
    expect(await setting.run(runner, ['cp sun map'])).toMatchObject({ reward: 1 });
  });

  test('is given up as well when a person cancels it', async () => {
    await using runner = await start();
    const person = new AbortController();
    const onEvent = (event: string) => event === 'environment-start' && person.abort(new Error('no more of this'));
    const limits = { limitMs: 600_000, graceMs: 500 };
    const ended = play(runner, lab('IgnoresBeingTold'), { taskDir: patientTask, limits, signal: person.signal, onEvent });
    await expect(ended).rejects.toThrow('no more of this');
  });

  test('and lets nothing else run is interrupted, and its siblings live', async () => {
    await using runner = await start({ silenceLimitMs: 10_000 });
    const pid = await runner.pid();
    const sibling = setting.run(runner, ['cp sun map', 'sleep 1']);
    const run = await play(runner, lab('BlocksTheLoop'), { taskDir: patientTask });
    expect(run).toMatchObject({ infraFailed: true, exceptionType: 'LoopBlocked' });
    expect(run.infraReason).toContain('the trial let nothing else run for 6 s');
    expect(await sibling).toMatchObject({ reward: 1 });
    expect(await runner.pid()).toBe(pid);
  });

  test('and cannot even be interrupted dies with the runner, and is the only one to blame', async () => {
    await using runner = await start({ silenceLimitMs: 4_000 });
    const sibling = setting.run(runner, ['cp sun map', 'sleep 30']);
    const [stuck, other] = await Promise.allSettled([play(runner, lab('BlocksTheLoopForGood'), { taskDir: patientTask }), sibling]);
    expect(stuck).toMatchObject({
      reason: { name: 'TrialCrashed', message: expect.stringMatching(/let nothing else run \(.*lab_environments.*was killed/s) },
    });
    expect(other).toMatchObject({ reason: { name: 'RunnerDied' } });
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
