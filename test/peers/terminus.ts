import { join } from 'node:path';
import type { ChatRenderer, SampleResult, TokenSampler } from '../../services/gateway/index.ts';
import { chatRenderer } from '../../services/gateway/renderers/chat-renderer.ts';
import { loadChatTemplate } from '../../services/gateway/template/chat-template.ts';
import { loadTokenizer } from '../../services/gateway/tokenizer/native.ts';
import { type Sampler, TinkerClient } from '../../services/tinker/index.ts';
import { everythingIn } from '../harbor/setting.ts';
import { NO_TMUX, TerminusSetting, TMUX_IS_HERE } from '../harbor/terminus-setting.ts';
import { API_KEY, MODEL, type Peer } from './peers.ts';
import { type Check, checkFolder, checkPlayed, type Played } from './terminus-checks.ts';

/**
 * harbor's terminus-2, in a real sandbox, plays with a peer's tiny model through our gateway. The model talks nonsense, so both games are
 * lost; what counts is that every token of them is the server's own.
 */

const MODEL_FOLDER = join(import.meta.dirname, 'models', MODEL);
/**
 * The peers take prompts of any length and say so (no longest one), so the window is ours to choose: one that JAX has to compile for few
 * lengths only. terminus-2's first message is about 3000 bytes, and each is a token.
 */
const WINDOW_TOKENS = 4096;
const GAMES = [
  { name: 'until its turns are over', end: 'max_turns', maxTurns: 3, maxTokens: 200, seed: 100 },
  { name: 'until the window is full', end: 'overflow', maxTurns: 50, maxTokens: 24, seed: 200 },
] as const;

/** A JAX server compiles for each length. */
const GAME_LIMIT_MS = 600_000;

export async function playTerminus(peer: Peer, baseUrl: string): Promise<readonly Check[]> {
  if (!TMUX_IS_HERE) return [{ what: 'terminus-2', problem: NO_TMUX }];
  const { trainingBodies, patienceSeconds } = peer;
  await using client = await TinkerClient.connect({ baseUrl, apiKey: API_KEY, trainingBodies, noProgressMs: patienceSeconds * 1000 });
  const sampler = await client.sampler({ baseModel: MODEL });
  const renderer = await tinyRenderer();
  await using terminus = await TerminusSetting.make();
  const checks: Check[] = [];
  for (const game of GAMES) {
    const played = await play(game, { terminus, sampler, renderer });
    // Nonsense that does not end fills the window before its turns are over.
    const ends = peer.ignoresStopTokens ? [...new Set([game.end, 'overflow'])] : [game.end];
    checks.push(...checkPlayed({ name: game.name, ends, contextLimitTokens: WINDOW_TOKENS }, played));
  }
  await terminus.runner.close();
  checks.push(
    ...checkFolder({ sandboxes: await terminus.setting.sandboxes(), files: await everythingIn(terminus.setting.dir), keys: terminus.keys }),
  );
  return checks;
}

async function tinyRenderer(): Promise<ChatRenderer> {
  const tokenizer = await loadTokenizer(MODEL_FOLDER, MODEL);
  // harbor counts no answer that is cut off as a turn, and nonsense seldom ends: any control token ends it here.
  const stopTokens = tokenizer.addedTokens.map(({ id }) => id);
  return chatRenderer({ name: MODEL, tokenizer, template: await loadChatTemplate(MODEL_FOLDER, { nowMs: 0 }), stopTokens });
}

type With = { readonly terminus: TerminusSetting; readonly sampler: Sampler; readonly renderer: ChatRenderer };

async function play(game: (typeof GAMES)[number], { terminus, sampler, renderer }: With): Promise<Played> {
  const { maxTurns, maxTokens, seed } = game;
  const contextLimitTokens = WINDOW_TOKENS;
  const issued: SampleResult[] = [];
  const witnessed: TokenSampler = {
    version: sampler.version,
    async sample(request) {
      const result = await sampler.sample({ ...request, seed: seed + issued.length });
      issued.push(result);
      return result;
    },
  };
  const { session, ...run } = await terminus.play({
    sampler: witnessed,
    renderer,
    agent: { maxTurns, maxTokens, contextLimitTokens, model: MODEL },
    gateway: { contextLimitTokens, maxTokensPerCall: maxTokens, modelName: MODEL },
    agentMs: GAME_LIMIT_MS,
  });
  const record = session.record();
  const last = record.spans.at(-1);
  // One fragment: its longest sequence holds every token of the game.
  const whole = last === undefined ? new Int32Array() : Int32Array.from([...last.prompt, ...last.sampled]);
  const { logprobs: rescored } = await sampler.promptLogprobs(whole);
  return { run, record, issued, whole, rescored };
}
