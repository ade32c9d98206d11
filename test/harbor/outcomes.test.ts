import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkSandbox, HarborRunner, nopAgent, TrialRefused } from '../../services/harbor/index.ts';
import { everythingIn, PLUGIN_DIR, SANDBOX_MODE, SECRET, Setting } from './setting.ts';

let setting: Setting;
let runner: HarborRunner;
beforeAll(async () => {
  setting = await Setting.make();
  runner = await HarborRunner.start(setting.options);
});
afterAll(async () => {
  await runner?.close();
  await setting?.[Symbol.asyncDispose]();
});

test('a solved trial has reward 1, and the agent saw what the model did', async () => {
  const events: string[] = [];
  const run = await setting.run(runner, ['cp sun map', 'cat sun; ls', 'rm nothing'], {}, { onEvent: (event) => events.push(event) });
  expect(run).toMatchObject({ reward: 1, executed: true, exceptionType: null, stopReason: 'submitted', agentTurns: 4 });
  expect(run.observations).toEqual(['[0]', '[0] 7 map sun', '[1]']);
  expect(events).toEqual(['start', 'environment-start', 'agent-start', 'agent-end', 'verification-start', 'end']);
  expect(run.timings.agentMs).toBeGreaterThan(0);
});

test('the model gets the instruction, our parameters and the trial’s key, and no file holds the key', async () => {
  const model = setting.model.model(['done']);
  const run = await runner.run(setting.config({ model }), { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: SECRET } });
  expect(setting.model.requests.get(model)).toEqual([
    { model, messages: [{ role: 'user', content: 'files sun\ntask copy sun to map' }], temperature: 1, max_tokens: 26 },
  ]);
  expect(setting.model.keys).toContain(`Bearer ${SECRET}`);
  const files = await everythingIn(run.trialDir);
  expect(files).toContain(model);
  expect(files).not.toContain(SECRET);
});

test('an unsolved trial has reward 0', async () => {
  expect(await setting.run(runner, ['cp sun moon'])).toMatchObject({ reward: 0, executed: true });
});

test('an agent that runs out of time is graded on what it did', async () => {
  const run = await setting.run(runner, (turn) => (turn === 0 ? 'cp sun map' : null), { agentMs: 1_500 });
  expect(run).toMatchObject({ reward: 1, executed: true, exceptionType: 'AgentTimeoutError', agentTurns: 1 });
});

test('a full context ends the episode, which is graded', async () => {
  const overflow = { status: 400, body: { error: { message: 'too long', code: 'context_length_exceeded' } } };
  const run = await setting.run(runner, (turn) => (turn === 0 ? 'cp sun map' : overflow));
  expect(run).toMatchObject({ reward: 1, executed: true, stopReason: 'overflow', agentTurns: 1 });
});

test('a trial that has used up what it may cost ends there, and is graded as it stands', async () => {
  const limit = { status: 400, body: { error: { message: 'no more', code: 'usd_limit_reached' } } };
  const run = await setting.run(runner, (turn) => (turn === 0 ? 'cp sun map' : limit));
  expect(run).toMatchObject({ reward: 1, executed: true, stopReason: 'usd_limit', agentTurns: 1 });
});

test('the last allowed turn still acts', async () => {
  const run = await setting.run(runner, (turn) => ['ls', 'cp sun map', 'rm map'][turn] ?? 'done', { agentKwargs: { max_turns: 2 } });
  expect(run).toMatchObject({ reward: 1, stopReason: 'max_turns', agentTurns: 2 });
});

test('an invalid key is one attempt: one call, and no other trial is worth it', async () => {
  let calls = 0;
  const run = await setting.run(runner, () => {
    calls += 1;
    return { status: 401, body: { error: { message: 'no such key', code: 'invalid_api_key' } } };
  });
  expect(run).toMatchObject({
    reward: null,
    executed: false,
    exceptionType: 'AuthenticationError',
    retry: 'never',
    stopReason: 'error',
    fault: 'model',
  });
  expect(calls).toBe(1);
});

test('a model server that fails makes the trial infra-failed, with its words', async () => {
  const run = await setting.run(runner, () => ({ status: 500, body: { error: { message: `no GPU for ${SECRET}` } } }));
  expect(run).toMatchObject({ reward: null, infraFailed: true, exceptionType: 'ModelCallError' });
  expect(run.exceptionMessage).toMatch(/HTTP 500.*no GPU/);
  expect(await everythingIn(run.trialDir)).not.toContain(SECRET);
});

test('a command that takes too long is ended with its children, and the episode goes on', async () => {
  const run = await setting.run(runner, ['sleep 40 & sleep 40', 'cp sun map'], { agentKwargs: { command_timeout_sec: 1 } });
  expect(run.observations).toEqual(['[124]', '[0]']);
  expect(run.reward).toBe(1);
});

test('background processes live on between commands', async () => {
  const run = await setting.run(runner, ['(sleep 0.5; cp sun map) > /dev/null 2>&1 &', 'ls map', 'sleep 1']);
  expect(run.observations).toEqual(['[0]', '[2]', '[0]']);
  expect(run.reward).toBe(1);
});

test('a long command and long output arrive whole and cut', async () => {
  const long = `echo ${'x'.repeat(60_000)} | wc -c; cp sun map; seq 1 100000`;
  const run = await setting.run(runner, [long], { agentKwargs: { observation_max_chars: 20 } });
  expect(run.observations).toEqual(['[0] 60001 1 2 3 4 5 6 7']);
});

test('limits hold', async () => {
  const run = await setting.run(runner, ['ulimit -n', 'head -c 3000000 /dev/zero > big; wc -c < big'], {
    kwargs: { limits: { nofile: 32, fsize_mb: 1 } },
  });
  expect(run.observations).toEqual(['[0] 32', '[0] 1048576']);
});

test('trials run side by side in one process', async () => {
  const pid = await runner.pid();
  const runs = await Promise.all(Array.from({ length: 6 }, (_, i) => setting.run(runner, [i % 2 === 0 ? 'cp sun map' : 'ls'])));
  expect(runs.map((run) => run.reward)).toEqual([1, 0, 1, 0, 1, 0]);
  expect(await runner.pid()).toBe(pid);
  expect(await setting.sandboxes()).toEqual([]);
});

test('harbor’s own agents run too', async () => {
  const config = { ...setting.config({ model: 'none' }), agent: { ...nopAgent, override_timeout_sec: 30 } };
  expect(await runner.run(config, { rewardKey: 'reward' })).toMatchObject({ reward: 0, executed: true });
});

test('a changed task is read anew', async () => {
  const taskDir = await setting.makeTask('changing');
  const first = await setting.run(runner, ['cp sun map'], { taskDir });
  await rm(join(taskDir, 'tests/test.sh'));
  await expect(setting.run(runner, ['cp sun map'], { taskDir })).rejects.toThrow(/test\.sh/);
  expect(first.reward).toBe(1);
});

test('a bad task or option is refused by name, and its siblings go on', async () => {
  const sibling = setting.run(runner, ['sleep 0.5; cp sun map']);
  await expect(setting.run(runner, ['ls'], { taskDir: join(setting.dir, 'nowhere') })).rejects.toThrow(TrialRefused);
  await expect(setting.run(runner, ['ls'], { agentKwargs: { max_turns: 'many' } })).rejects.toThrow(TrialRefused);
  expect(await setting.run(runner, ['ls'], { kwargs: { mode: 'none' } })).toMatchObject({
    infraFailed: true,
    exceptionMessage: expect.stringContaining('mode'),
  });
  expect(await setting.run(runner, ['ls'], { kwargs: { limits: { speed: 1 } } })).toMatchObject({
    infraFailed: true,
    exceptionMessage: expect.stringContaining('limits.speed'),
  });
  expect((await sibling).reward).toBe(1);
});

test('two trials of one name cannot run at the same time', async () => {
  const first = setting.run(runner, ['sleep 1; cp sun map'], { name: 'twin' });
  await expect(setting.run(runner, ['ls'], { name: 'twin' })).rejects.toThrow(/already running/);
  expect((await first).reward).toBe(1);
});

test('the sandbox check says that it works, or exactly why not', async () => {
  const { python } = setting.options;
  const check = { python, pluginDir: PLUGIN_DIR, mode: SANDBOX_MODE } as const;
  expect(await checkSandbox(check)).toMatchObject({ ok: true });
  expect(await checkSandbox({ ...check, pluginDir: '/nowhere' })).toMatchObject({
    ok: false,
    reason: expect.stringContaining('stillroom_harbor'),
  });
  expect(await checkSandbox({ ...check, python: '/no/python' })).toMatchObject({
    ok: false,
    reason: expect.stringContaining('/no/python'),
  });
});
