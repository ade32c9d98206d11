import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HarborRunner, RunnerDied } from '../../services/harbor/index.ts';
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

test('SIGKILL of the process that drives the runner ends the runner and its sandboxes', async () => {
  const program = `
    import { HarborRunner } from ${JSON.stringify(join(import.meta.dirname, '../../services/harbor/index.ts'))};
    const [options, config] = JSON.parse(process.argv[1]);
    const runner = await HarborRunner.start(options);
    console.log(await runner.pid());
    await runner.run(config, { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: 'k' } });`;
  const model = setting.model.model(['sleep 4723']);
  const input = JSON.stringify([setting.options, setting.config({ model })]);
  const driver = spawn(process.execPath, ['--input-type=module', '-e', program, input], { stdio: ['ignore', 'pipe', 'inherit'] });
  const pid = Number(await new Promise<string>((resolve) => driver.stdout.once('data', (data: Buffer) => resolve(data.toString()))));
  await until('sleep 4723 runs', async () => (await processesWith('sleep 4723')).length > 0);
  driver.kill('SIGKILL');
  await gone('sleep 4723');
  await until('the runner ends', async () => !isRunning(pid));
  expect(await setting.sandboxes()).toEqual([]);
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
