import type { QuickTask } from '../examples/quickstart/content.ts';
import {
  initialFiles,
  isSolved,
  MAX_ACTION_CHARS,
  MAX_TURNS,
  observationText,
  promptText,
  runSimulated,
} from '../examples/quickstart/content.ts';
import { type Decoder, type DenseWeights, TINY_SHAPE } from '../trainer/engine/index.ts';

const NEWLINE = 10;

/** An episode of a task in the simulated shell: its whole text as tokens, what of it was sampled, and whether it solved the task. */
export type SimulatedEpisode = {
  readonly tokens: number[];
  /** 1 where the token was sampled. */
  readonly mask: number[];
  /** Of sampled tokens; 0 elsewhere. */
  readonly logprobs: number[];
  solved: boolean;
};

const ids = (text: string): number[] => Array.from(text, (character) => character.charCodeAt(0));

/** Plays one episode per task at temperature 1, all at once; episode i is seeded by `seed + i`. */
export const playEpisodes = (decoder: Decoder, weights: DenseWeights, tasks: readonly QuickTask[], seed: number): SimulatedEpisode[] => {
  const plays = tasks.map((task) => {
    const prompt = ids(`${promptText(task)}\n$ `);
    const episode: SimulatedEpisode = { tokens: prompt, mask: prompt.map(() => 0), logprobs: prompt.map(() => 0), solved: false };
    return { task, episode, files: initialFiles(task), turns: 0 };
  });
  const waiting = new Map<number, (typeof plays)[number]>();
  const ask = (play: (typeof plays)[number]): void => {
    const prompt = Int32Array.from(play.episode.tokens);
    const maxTokens = Math.min(MAX_ACTION_CHARS, TINY_SHAPE.context - prompt.length);
    if (play.turns === MAX_TURNS || maxTokens < 1) return;
    const turnSeed = (seed + plays.indexOf(play)) * 16 + play.turns;
    const request = {
      weights,
      prompt,
      maxTokens,
      temperature: 1,
      stopTokens: [NEWLINE],
      seed: turnSeed,
      promptLogprobs: false,
      topkPromptLogprobs: 0,
    };
    waiting.set(decoder.submit(request), play);
  };
  plays.forEach(ask);
  while (decoder.isBusy) {
    for (const { id, result } of decoder.step()) {
      const play = waiting.get(id);
      if (!play) continue;
      const { episode, files } = play;
      append(episode, [...result.tokens], [...result.logprobs]);
      play.turns += 1;
      const action = String.fromCharCode(...result.tokens).replace(/\n$/, '');
      if (action === 'done') continue;
      const { exitCode, stdout } = runSimulated(action, files);
      append(episode, ids(`${result.stop === 'length' ? '\n' : ''}${observationText(exitCode, stdout)}\n$ `), null);
      ask(play);
    }
  }
  for (const { task, episode, files } of plays) episode.solved = isSolved(task, files);
  return plays.map(({ episode }) => episode);
};

const append = (episode: SimulatedEpisode, tokens: readonly number[], logprobs: readonly number[] | null): void => {
  tokens.forEach((token, i) => {
    if (episode.tokens.length === TINY_SHAPE.context) return;
    episode.tokens.push(token);
    episode.mask.push(logprobs ? 1 : 0);
    episode.logprobs.push(logprobs?.[i] ?? 0);
  });
};

export const solveRate = (episodes: readonly SimulatedEpisode[]): number =>
  episodes.filter(({ solved }) => solved).length / episodes.length;
