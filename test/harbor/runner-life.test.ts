import { spawnSync } from 'node:child_process';
import { chmod, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contentOf, HarborRunner, packTrial, RunnerDied, residentRunner, TrialMemory, unpackTrial } from '../../services/harbor/index.ts';
import { makeScratchDir } from '../../services/harbor/scratch.ts';
import { PROJECT_ROOT, runnerVariables } from '../../services/settings/index.ts';
import { everythingIn, processesWith, SANDBOX_MODE, Setting, until } from './setting.ts';

let setting: Setting;
beforeAll(async () => {
  setting = await Setting.make();
});
afterAll(() => setting?.[Symbol.asyncDispose]());

const SERVICE_KEY = 'tml-of-the-service-alone';
const GRADER_KEY = 'grader-key-0123456789';

test('a runner that dies at every start is started ever more rarely, and says why', async () => {
  const starts = join(setting.dir, 'starts');
  const python = join(setting.dir, 'dying-python');
  await writeFile(python, `#!/bin/sh\necho start >> ${starts}\necho "first line" >&2\necho "no module named harbor" >&2\nexit 3\n`);
  await chmod(python, 0o755);
  await using runner = new HarborRunner({ ...setting.options, python });
  const model = setting.model.model(['ls']);
  const beganAtMs = performance.now();
  for (let round = 0; round < 4; round++) {
    // Trials that come together share one start.
    const trials = [1, 2, 3].map(() => runner.run(setting.config({ model }), { rewardKey: 'reward' }));
    for (const trial of trials) {
      await expect(trial).rejects.toThrow(RunnerDied);
      await expect(trial).rejects.toThrow(
        /^the harbor runner ended before it was ready \(exit code 3\): no module named harbor\nIts last lines:\nfirst line/,
      );
    }
  }
  expect((await readFile(starts, 'utf8')).split('\n')).toHaveLength(4 + 1);
  expect(performance.now() - beganAtMs).toBeGreaterThanOrEqual(250 + 500);
  const abort = new AbortController();
  const waiting = runner.run(setting.config({ model }), { rewardKey: 'reward', signal: abort.signal });
  abort.abort(new Error('enough'));
  await expect(waiting).rejects.toThrow('enough');
});

test('a runner that is killed again and again comes back each time, and trials that ended stay ended', async () => {
  await using runner = await HarborRunner.start(setting.options);
  const ended: Promise<unknown>[] = [];
  for (const sleep of ['sleep 4731', 'sleep 4732', 'sleep 4733']) {
    const done = await setting.run(runner, ['cp sun map']);
    expect(done.reward).toBe(1);
    const trial = setting.run(runner, [sleep]);
    ended.push(expect(trial).rejects.toThrow(RunnerDied));
    await until(`${sleep} runs`, async () => (await processesWith(sleep)).length > 0);
    process.kill(await runner.pid(), 'SIGKILL');
    await ended.at(-1);
    expect(JSON.parse(await readFile(join(done.trialDir, 'result.json'), 'utf8')).verifier_result.rewards).toEqual({ reward: 1 });
  }
});

test('two workers on one machine have each a runner and a HOME of its own; the end or death of one is nothing to the other', async () => {
  const stateDir = join(setting.dir, 'state');
  const homes = join(stateDir, 'harbor');
  const variables = { env: { STILLROOM_SANDBOX_ROOT: join(setting.dir, 'sandboxes') }, secrets: [] };
  // A HOME of a worker that died before.
  const deadPid = spawnSync(process.execPath, ['-e', '']).pid;
  const left = await makeScratchDir(homes, 'home');
  const dead = basename(left).replace(`-${process.pid}-`, `-${deadPid}-`);
  await rename(left, join(homes, dead));

  const [first, second] = [1, 2].map(() => residentRunner({ projectRoot: PROJECT_ROOT, stateDir, variables }));
  if (!first || !second) expect.fail('two');
  await using _ = second;
  const [one, two] = [await first.get(), await second.get()];
  const [ofOne, ofTwo] = ['sleep 4741', 'sleep 2; cp sun map'].map((command, at) => setting.run([one, two][at] ?? one, [command]));
  const died = expect(ofOne).rejects.toThrow(RunnerDied);
  await until('both run', async () => (await processesWith('sleep 4741')).length > 0 && (await setting.sandboxes()).length === 2);
  const names = await readdir(homes);
  expect(names).toHaveLength(2);
  expect(names).not.toContain(dead);
  expect(await one.pid()).not.toBe(await two.pid());
  process.kill(await one.pid(), 'SIGKILL');
  await died;
  await first[Symbol.asyncDispose]();
  await until('what the first left is swept', async () => (await setting.sandboxes()).length < 2);
  expect(await readdir(homes)).toHaveLength(1);
  expect((await ofTwo)?.reward).toBe(1);
});

test('variables that the settings name reach the runner and what the job template says, and stand in no file', async () => {
  const worker = { ...process.env, TINKER_API_KEY: SERVICE_KEY, GRADER_KEY };
  const { env, secrets } = runnerVariables(['GRADER_KEY', 'TINKER_API_KEY'], worker);
  await using runner = await HarborRunner.start({ ...setting.options, env, secrets });
  const runnersEnv =
    process.platform === 'linux' ? await readFile(`/proc/${await runner.pid()}/environ`, 'utf8') : `GRADER_KEY=${GRADER_KEY}`;
  expect(runnersEnv).toContain(`GRADER_KEY=${GRADER_KEY}`);
  expect(runnersEnv).not.toContain(SERVICE_KEY);

  const taskDir = await setting.makeTask('secret');
  const given = ['$', '{GRADER_KEY}'].join('');
  // A careless grader prints what it was given, and an environment that was not given it has none.
  const script =
    'echo "grader $GRADER" ; test -n "$GRADER" && echo 1 > "$LOGS_DIR/verifier/reward.txt"; env > "$LOGS_DIR/verifier/env.txt"\n';
  await writeFile(join(taskDir, 'tests/test.sh'), `#!/bin/sh\n${script}`);
  const model = setting.model.model(['echo "agent has $GRADER."']);
  const config = setting.config({ model, taskDir });
  const options = { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: 'gateway-key-0123' } };
  const run = await runner.run({ ...config, verifier: { ...config.verifier, env: { GRADER: given } } } as typeof config, options);
  expect(run).toMatchObject({ reward: 1 });
  expect(setting.model.observations(model)).toEqual(['[0] agent has .']);
  const bundle = await unpackTrial((await packTrial(run.trialDir, secrets)) ?? expect.fail('nothing packed'));
  const all = bundle.files.map((file) => contentOf(file).toString()).join('\n');
  expect(all).toContain('GRADER=[REDACTED]');
  expect(all).not.toContain(GRADER_KEY);
  expect(await readFile(join(run.trialDir, 'result.json'), 'utf8')).toContain(given);
  expect(await everythingIn(setting.dir)).not.toContain(SERVICE_KEY);
});

test('with little memory trials run one after the other, and what they used is measured', async () => {
  await using runner = await HarborRunner.start(setting.options);
  const memory = new TrialMemory({ reserveBytes: 2 ** 60 });
  let [running, most] = [0, 0];
  const peaks: number[] = [];
  const play = async () => {
    const turn = memory.turn();
    await turn.begun;
    most = Math.max(most, ++running);
    // Holds 24 MB for as long as a look at it may take.
    const eat = 'x=$(head -c 24000000 /dev/zero | tr "\\0" x); sleep 1; cp sun map';
    let peak = 0;
    const onMemory = (bytes: number) => {
      peak = Math.max(peak, bytes);
      turn.used(bytes);
    };
    const { reward } = await setting.run(runner, [eat], {}, { onMemory });
    running--;
    peaks.push(peak);
    turn.end();
    return reward;
  };
  expect(await Promise.all([play(), play()])).toEqual([1, 1]);
  expect(most).toBe(1);
  if (SANDBOX_MODE === 'bwrap') for (const peak of peaks) expect(peak).toBeGreaterThan(20e6);
});
