import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildDatums } from '../../core/tokens/datums.ts';
import type { Datum } from '../../core/tokens/span.ts';
import { type AgentProgramFolder, qwenCode } from '../support/qwen-code.ts';
import { logprobOf } from '../support/scripted-service.ts';
import { FETCH_LIMIT_MS } from '../support/tokenizers.ts';
import { type Played, PlayedAgents, type Player } from './played-agents.ts';
import { SANDBOX_MODE } from './setting.ts';
import { TMUX_IS_HERE, terminusTurn } from './terminus-setting.ts';

let agents: PlayedAgents;
let qwen: AgentProgramFolder;
beforeAll(async () => {
  [agents, qwen] = await Promise.all([PlayedAgents.make(), qwenCode()]);
}, FETCH_LIMIT_MS);
afterAll(() => agents?.[Symbol.asyncDispose]());

const THOUGHT = '<think>\nThe file `sun` is to be copied: “cp” does it. 日本語 🌞\n</think>\n\n';
const terminus = [['ls\n'], ['cp sun map\n'], [], []].map((keys) => terminusTurn(keys, { done: keys.length === 0 }));
const call = (command: string) =>
  `<tool_call>\n${JSON.stringify({ name: 'run_shell_command', arguments: { command, is_background: false } })}\n</tool_call>`;

const OWN = { runtime: 'import', import_path: 'shell_agent:ShellAgent', kwargs: { key: `\${STILLROOM_GATEWAY_KEY}` } };
const PLAYERS: Record<string, () => Player> = {
  ...(TMUX_IS_HERE ? { pi: () => ({ agent: 'pi', says: terminus }) } : {}),
  'our small agent': () => ({ agent: 'turn', says: ['ls', 'cp sun map', 'done'] }),
  'a class of one’s own': () => ({ agent: OWN, says: ['ls', 'cp sun map', 'DONE'] }),
  'a program in the sandbox': () => ({
    agent: {
      runtime: 'installed',
      agent: 'qwen-coder',
      // Otherwise it also asks the model what of a conversation to keep in mind.
      kwargs: { config: { memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false } } },
      env: { OPENAI_API_KEY: `\${STILLROOM_GATEWAY_KEY}`, OPENAI_BASE_URL: `\${STILLROOM_API_BASE}`, PATH: qwen.path },
    },
    says: [call('ls'), call('cp sun map'), 'It is copied.'],
    binds: qwen.binds,
  }),
};

/** One training sequence: what was sampled and nothing else at its loss positions, each id with its own log-probability. */
function expectExactly(datums: readonly Datum[], said: readonly Int32Array[]): void {
  expect(datums).toHaveLength(1);
  const { tokens, mask, logprobs } = datums[0] as Datum;
  const at = [...mask.keys()].filter((position) => mask[position] === 1);
  const ids = said.flatMap((turn) => [...turn]);
  expect(at.map((position) => tokens[position])).toEqual(ids);
  expect(at.map((position) => logprobs[position])).toEqual(ids.map(logprobOf));
}

/** A program starts anew for each trial, which takes seconds: it plays once, with thoughts. */
const SEATS = Object.entries(PLAYERS).flatMap(([name, player]) => [
  ...(name.startsWith('a program') ? [] : [[name, 'says what to do', '', player] as const]),
  [name, 'thinks before each answer', THOUGHT, player] as const,
]);

describe.concurrent.each(SEATS)('%s, and a model that %s', (_, __, thought, player) => {
  test('solve the task; what is trained on is exactly what was sampled, in one fragment', async () => {
    const { says, ...rest } = player();
    const { trial, said, prompts, episode, datums, key, files } = await agents.play({ ...rest, says: says.map((text) => thought + text) });
    expect(trial).toMatchObject({ reward: 1, exceptionType: null, exceptionMessage: null, calls: says.length, fragmentCauses: {} });
    expectExactly(datums, said);
    expect(episode?.spans.map(({ prompt }) => [...prompt])).toEqual(prompts.map((prompt) => [...prompt]));
    expect(key).not.toBe('');
    expect(files).toContain(trial.trialId);
    expect(files.includes(key)).toBe(false);
  });
});

test('ids that were made of text again are found out', async () => {
  const played: Played = await agents.play({ agent: 'turn', says: ['ls', 'cp sun map', 'done'] });
  const { episode, said } = played;
  const spans = await Promise.all(
    (episode?.spans ?? []).map(async (span) => {
      const sampled = await agents.tokenizer.encode(await agents.tokenizer.decode(span.sampled));
      return { ...span, sampled, logprobs: Float64Array.from(sampled, logprobOf) };
    }),
  );
  const again = buildDatums([{ trial: 't' as never, stopReason: null, spans }], { contextBudgetTokens: 40_000, maxDatumTokens: 40_000 });
  expect(() => expectExactly(again.datums, said)).toThrow();
  expectExactly(played.datums, said);
});

describe.concurrent('a key that is refused', () => {
  const outside = Object.entries(PLAYERS).filter(([name]) => !name.startsWith('a program'));
  test.each(outside)('%s asks once, and the trial says nothing of the model', async (_, player) => {
    const { trial, datums } = await agents.play({ ...player(), key: 'sr-of-another-trial' });
    expect(trial).toMatchObject({ executed: false, reward: null, calls: 0, stopReason: 'error' });
    expect(`${trial.exceptionType} ${trial.exceptionMessage}`).toMatch(/401|AuthenticationError/);
    expect(datums).toEqual([]);
    expect(agents.proxy.count(`/t/${trial.trialId}/`)).toBe(1);
  });
});

if (SANDBOX_MODE === 'bwrap')
  test('a program reaches the gateway from its sandbox, nothing else of this machine, and not even that once it has ended', async () => {
    const { project, gateway, proxy } = agents;
    const reach = (port: number | string) =>
      `timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/${port} && printf "GET /t/none/v1/models HTTP/1.1\\r\\nHost: gateway\\r\\n\\r\\n" >&3 && head -1 <&3' 2> /dev/null`;
    const other = new URL(proxy.url).port;
    const looks = `#!/bin/sh\n[ "$1" = --version ] && exec echo 1\n${reach(gateway.port)} > /app/gateway\n${reach(other)} > /app/other\ntrue\n`;
    await project.file('programs/bin/qwen', looks);
    await chmod(join(project.root, 'programs/bin/qwen'), 0o755);
    await chmod(project.root, 0o755);
    const grades = `grep -q 404 gateway && [ ! -s other ] && [ -z "$(${reach(gateway.port)})" ] && r=1 || r=0\necho $r > "$LOGS_DIR/verifier/reward.txt"\n`;
    await project.task('b', { content: 'look around', testScript: grades });
    const player = PLAYERS['a program in the sandbox']?.() ?? expect.fail('no such player');
    const env = { PATH: `${join(project.root, 'programs/bin')}:/usr/bin:/bin` };
    const agent = { ...(player.agent as object), env };
    const { trial } = await agents.play({ agent, says: [], binds: [join(project.root, 'programs')], task: 'b' });
    // It asked its model nothing, and was graded for what it left.
    expect(trial).toMatchObject({ reward: 1, executed: true, calls: 0, spans: null, exceptionMessage: null });
  });
