import { afterAll, beforeAll, expect, test } from 'vitest';
import { tinyAsciiRenderer } from '../../services/gateway/renderers/tiny-ascii.ts';
import { says, scriptedSampler } from '../../services/gateway/testing/scripted-sampler.ts';
import { TrialRefused, terminusAgent } from '../../services/harbor/index.ts';
import type { Script } from './fake-model.ts';
import { everythingIn, SECRET, until } from './setting.ts';
import { TerminusSetting, TMUX_IS_HERE, terminusTurn } from './terminus-setting.ts';

let terminus: TerminusSetting;
beforeAll(async () => {
  terminus = await TerminusSetting.make();
});
afterAll(() => terminus?.[Symbol.asyncDispose]());

/** Everything that the trial, the runner and its HOME wrote, and what the runner said. */
async function written(): Promise<string> {
  return [await everythingIn(terminus.setting.dir), ...terminus.log].join('\n');
}

/** A trial with a server that does what `script` says and sees the key `SECRET`. */
function play(name: string, script: Script, options: { readonly secrets?: Record<string, string>; readonly signal?: AbortSignal } = {}) {
  const { runner, setting } = terminus;
  const { model } = setting;
  const agent = terminusAgent({
    apiBase: model.apiBase,
    model: 'unused',
    maxTurns: 4,
    temperature: 1,
    maxTokens: 100,
    contextLimitTokens: 20_000,
    compaction: false,
    collectRolloutDetails: false,
  });
  const modelName = `hosted_vllm/${model.model(script)}`;
  const config = { ...setting.config({ model: 'unused', name }), agent: { ...agent, model_name: modelName, override_timeout_sec: 60 } };
  return runner.run(config, { rewardKey: 'reward', secrets: { STILLROOM_GATEWAY_KEY: SECRET }, ...options });
}

test('a trial without the secret is refused by its name', async () => {
  await expect(play('no-secret', () => '', { secrets: {} })).rejects.toThrow(TrialRefused);
  await expect(play('no-secret', () => '', { secrets: {} })).rejects.toThrow(/no secret STILLROOM_GATEWAY_KEY/);
});

if (TMUX_IS_HERE) {
  test('the key opens the gateway, and neither a file nor the sandbox has it', async () => {
    const turns = [terminusTurn(['env; cat /proc/*/environ /proc/*/cmdline\n']), terminusTurn(['cp sun map\n'])];
    const done = terminusTurn([], { done: true });
    const sampler = scriptedSampler(...[...turns, done, done].map((text) => says(`${text}\n`)));
    const { session, ...run } = await terminus.play({ sampler, renderer: tinyAsciiRenderer() });
    expect(run).toMatchObject({ reward: 1, stopReason: 'submitted' });
    const files = await written();
    expect(files).toContain('TMUX_PANE='); // the environment was shown
    expect(files).toMatch(/"\$\{STILLROOM_GATEWAY_KEY\}"/);
    expect(files).not.toContain(session.apiKey);
  });

  test('a server that says the key in its errors puts it into no file', async () => {
    const refusal = { status: 401, body: { error: { message: `no such key: ${SECRET}`, code: 'invalid_api_key' } } };
    const run = await play('echo', () => refusal);
    expect(run).toMatchObject({ infraFailed: true, exceptionType: 'AuthenticationError' });
    expect(run.exceptionMessage).toMatch(/no such key: \[REDACTED\]/);
    expect(terminus.setting.model.keys).toContain(`Bearer ${SECRET}`);
    const files = await written();
    expect(files).toContain('no such key: [REDACTED]');
    expect(files).not.toContain(SECRET);
  });

  test('nor does an agent that says it, nor a trial that is cancelled meanwhile', async () => {
    const abort = new AbortController();
    const script: Script = (turn) => (turn === 0 ? terminusTurn([`echo ${SECRET} | tee /logs/agent/note > /logs/artifacts/note\n`]) : null);
    const trial = play('cancelled', script, { signal: abort.signal });
    trial.catch(() => {});
    await until('the model is asked again', async () => [...terminus.setting.model.requests.values()].at(-1)?.length === 2);
    abort.abort(new Error('enough'));
    await expect(trial).rejects.toThrow('enough');
    const files = await written();
    expect(files).toContain('CancelledError');
    expect(files).toContain('echo [REDACTED]');
    expect(files).not.toContain(SECRET);
  });
}
