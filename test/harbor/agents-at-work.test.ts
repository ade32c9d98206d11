import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Datum } from '../../core/tokens/span.ts';
import { buildDatums } from '../../core/tokens/datums.ts';
import { type AgentProgramFolder, qwenCode } from '../support/qwen-code.ts';
import { logprobOf } from '../support/scripted-service.ts';
import { FETCH_LIMIT_MS } from '../support/tokenizers.ts';
import { type Played, PlayedAgents, type Player } from './played-agents.ts';
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
    const { trial, said, prompts, episode, datums } = await agents.play({ ...rest, says: says.map((text) => thought + text) });
    expect(trial).toMatchObject({ reward: 1, exceptionType: null, exceptionMessage: null, calls: says.length, fragmentCauses: {} });
    expectExactly(datums, said);
    expect(episode?.spans.map(({ prompt }) => [...prompt])).toEqual(prompts.map((prompt) => [...prompt]));
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
