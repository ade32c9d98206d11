import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HarborRunner, RunnerDied, sweepSandboxes } from '../../services/harbor/index.ts';
import { processesWith, Setting, until } from './setting.ts';

let setting: Setting;
beforeAll(async () => {
  setting = await Setting.make();
});
afterAll(() => setting?.[Symbol.asyncDispose]());

/** A trial whose command sleeps; resolves when the sleep runs. */
async function asleep(runner: HarborRunner, sleep: string, signal?: AbortSignal) {
  const trial = setting.run(runner, [sleep], {}, signal ? { signal } : {});
  trial.catch(() => {});
  await until(`${sleep} runs`, async () => (await processesWith(sleep)).length > 0);
  return { trial };
}

async function gone(sleep: string): Promise<void> {
  await until(`no ${sleep}`, async () => (await processesWith(sleep)).length === 0);
}

test('an aborted trial rejects with the reason once its sandbox is gone, and its siblings go on', async () => {
  await using runner = await HarborRunner.start(setting.options);
  const abort = new AbortController();
  const { trial } = await asleep(runner, 'sleep 4720', abort.signal);
  const sibling = setting.run(runner, ['sleep 1; cp sun map']);
  abort.abort(new Error('enough'));
  await expect(trial).rejects.toThrow('enough');
  expect(await processesWith('sleep 4720')).toEqual([]);
  expect((await sibling).reward).toBe(1);
  expect(await setting.sandboxes()).toEqual([]);
});

test('an abort while the model thinks leaves a result that says so', async () => {
  await using runner = await HarborRunner.start(setting.options);
  const abort = new AbortController();
  const model = setting.model.model(() => null);
  const trial = runner.run(setting.config({ model, name: 'thinking' }), {
    rewardKey: 'reward',
    signal: abort.signal,
    secrets: { STILLROOM_GATEWAY_KEY: 'k' },
  });
  trial.catch(() => {});
  await until('the model is asked', async () => setting.model.requests.get(model)?.length === 1);
  abort.abort(new Error('stop'));
  await expect(trial).rejects.toThrow('stop');
  const result = JSON.parse(await readFile(join(setting.dir, 'trials/thinking/result.json'), 'utf8'));
  expect(result.exception_info.exception_type).toBe('CancelledError');
  expect(await setting.sandboxes()).toEqual([]);
});

test('a trial that is aborted in the moment in which it is asked for ends all the same', async () => {
  await using runner = await HarborRunner.start(setting.options);
  for (let round = 0; round < 5; round++) {
    const abort = new AbortController();
    const trial = setting.run(runner, ['sleep 4723'], {}, { signal: abort.signal });
    trial.catch(() => {});
    await runner.pid(); // by now the runner was told of the trial, and has not looked at it
    abort.abort(new Error('at once'));
    await expect(trial).rejects.toThrow('at once');
  }
  expect(await setting.sandboxes()).toEqual([]);
});

test('a signal that is aborted already starts nothing', async () => {
  await using runner = await HarborRunner.start(setting.options);
  await expect(setting.run(runner, ['ls'], {}, { signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late');
});

test('closing cancels what runs and leaves nothing', async () => {
  const runner = await HarborRunner.start(setting.options);
  const { trial } = await asleep(runner, 'sleep 4721');
  await runner.close();
  await expect(trial).rejects.toThrow(/told to end/);
  expect(await processesWith('sleep 4721')).toEqual([]);
  expect(await setting.sandboxes()).toEqual([]);
  await expect(setting.run(runner, ['ls'])).rejects.toThrow(/closed/);
});

describe('SIGKILL of the runner', () => {
  test('rejects its trials, leaves no process, and the next trial runs in a new one that clears the rest', async () => {
    await using runner = await HarborRunner.start(setting.options);
    const { trial } = await asleep(runner, 'sleep 4722');
    process.kill(await runner.pid(), 'SIGKILL');
    await expect(trial).rejects.toThrow(RunnerDied);
    await expect(trial).rejects.toThrow(/SIGKILL/);
    await gone('sleep 4722');
    const next = await setting.run(runner, ['cp sun map']);
    expect(next.reward).toBe(1);
    expect(await setting.sandboxes()).toEqual([]);
  });
});

describe('a stopped runner', () => {
  test('is killed when it does not answer, and its trials are told', async () => {
    await using runner = await HarborRunner.start({ ...setting.options, silenceLimitMs: 5_000 });
    const { trial } = await asleep(runner, 'sleep 4725');
    process.kill(await runner.pid(), 'SIGSTOP');
    await expect(trial).rejects.toThrow(/SIGKILL.*had not answered for 5 s/s);
    await gone('sleep 4725');
    await until('its sandbox is removed', async () => (await setting.sandboxes()).length === 0);
    expect((await setting.run(runner, ['cp sun map'])).reward).toBe(1);
  });

  test('that goes on in time is left alone', async () => {
    await using runner = await HarborRunner.start(setting.options);
    const trial = setting.run(runner, ['sleep 1; cp sun map']);
    const pid = await runner.pid();
    process.kill(pid, 'SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 4_000)); // more than one ping
    process.kill(pid, 'SIGCONT');
    expect((await trial).reward).toBe(1);
    expect(await runner.pid()).toBe(pid);
  });
});

const PROGRAM = `
  import { HarborRunner } from ${JSON.stringify(join(import.meta.dirname, '../../services/harbor/index.ts'))};
  const [options, config] = JSON.parse(process.argv[1]);
  const runner = await HarborRunner.start(options);
  console.log(await runner.pid());
  await runner.run(config, { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: 'k' } });`;

/** A runner that is driven by a process of its own, with a trial whose command sleeps. */
async function driven(command: string, sleep: string, kwargs: Record<string, unknown> = {}) {
  const input = JSON.stringify([setting.options, setting.config({ model: setting.model.model([command]), kwargs })]);
  const driver = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, input], { stdio: ['ignore', 'pipe', 'inherit'] });
  const pid = Number(await new Promise<string>((resolve) => driver.stdout.once('data', (data: Buffer) => resolve(data.toString()))));
  await until(`${sleep} runs`, async () => (await processesWith(sleep)).length > 0);
  return { driver, pid };
}

describe('SIGKILL of the process that drives the runner', () => {
  test('ends the runner and its sandboxes', async () => {
    const { driver, pid } = await driven('sleep 4723', 'sleep 4723');
    driver.kill('SIGKILL');
    await gone('sleep 4723');
    await until('the runner ends', async () => !isRunning(pid));
    expect(await setting.sandboxes()).toEqual([]);
  });

  test('and of the runner at once: no process is left, and the next sweep removes the sandbox', async () => {
    const { driver, pid } = await driven('sleep 4726', 'sleep 4726');
    process.kill(pid, 'SIGKILL');
    driver.kill('SIGKILL');
    await gone('sleep 4726');
    await sweepSandboxes(setting.options);
    expect(await setting.sandboxes()).toEqual([]);
  });

  if (process.platform === 'linux')
    test('of the runner while a sandbox starts: the next sweep ends what waits for it, and nothing else', async () => {
      const left = join(setting.dir, 'sandboxes/stillroom-harbor-dead');
      await mkdir(join(left, 'sandbox-x/life-1'), { recursive: true });
      await writeFile(join(left, 'lock'), '');
      await using log = await open(join(left, 'sandbox-x/life-1/bwrap.log'), 'w');
      const waiting = spawn('sleep', ['4731'], { stdio: ['ignore', log.fd, log.fd] });
      const bystander = spawn('sleep', ['4732'], { stdio: 'ignore' });
      await sweepSandboxes(setting.options);
      await until('it ends', async () => waiting.signalCode === 'SIGKILL');
      expect(existsSync(left)).toBe(false);
      expect(bystander.signalCode).toBe(null);
      bystander.kill();
    });

  // Elsewhere nobody can tell one process from another that got its pid.
  if (process.platform === 'linux')
    test('while the runner is stopped: the next sweep ends it and everything in it, and nothing else', async () => {
      await using other = await HarborRunner.start(setting.options);
      const { trial } = await asleep(other, 'sleep 4728');
      const kwargs = { mode: 'plain' };
      const { driver, pid } = await driven('setsid sleep 4727 > /dev/null 2>&1 & sleep 4727', 'sleep 4727', kwargs);
      process.kill(pid, 'SIGSTOP');
      driver.kill('SIGKILL');
      await until('the driver ends', async () => driver.signalCode !== null);
      expect(await processesWith('sleep 4727')).not.toEqual([]);
      await sweepSandboxes(setting.options);
      await until('the runner ends', async () => !isRunning(pid));
      await gone('sleep 4727');
      expect(await processesWith('sleep 4728')).not.toEqual([]);
      expect(await setting.sandboxes()).toHaveLength(1);
      trial.catch(() => {});
    });
});

test('SIGTERM and SIGINT end the runner in order', async () => {
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    await using runner = await HarborRunner.start(setting.options);
    const { trial } = await asleep(runner, 'sleep 4724');
    process.kill(await runner.pid(), name);
    await expect(trial).rejects.toThrow(/told to end/);
    await gone('sleep 4724');
    expect(await setting.sandboxes()).toEqual([]);
  }
});

test('a Python that does not start is reported with its words', async () => {
  await expect(HarborRunner.start({ ...setting.options, python: '/no/such/python' })).rejects.toThrow(
    /\/no\/such\/python cannot be started/,
  );
  await expect(HarborRunner.start({ ...setting.options, pluginDir: '/nowhere' })).rejects.toThrow(/No module named/);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
