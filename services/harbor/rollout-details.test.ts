import { expect, test } from 'vitest';
import { readRolloutTurns } from './rollout-details.ts';

const read = (details: string) => readRolloutTurns(JSON.parse(details), `{"agent_result":{"rollout_details":${details}}}`);
const segment = (prompts: string, completions: string, logprobs: string) =>
  `[{"prompt_token_ids":${prompts},"completion_token_ids":${completions},"logprobs":${logprobs}}]`;

test('turns become spans of ids and log-probabilities', () => {
  const { turns, problem } = read(segment('[[1,2],[1,2,3,4]]', '[[3],[5]]', '[[-0.5],[0.0]]'));
  expect(problem).toBeNull();
  expect(turns.map(({ callIndex, prompt, sampled, logprobs }) => [callIndex, [...prompt], [...sampled], [...logprobs]])).toEqual([
    [0, [1, 2], [3], [-0.5]],
    [1, [1, 2, 3, 4], [5], [0]],
  ]);
});

test.each([
  ['a missing completion shifts the lists', segment('[[1],[1,2]]', '[[3]]', '[[-0.5],[-0.5]]'), /2 prompts, 1 completions/],
  ['fewer log-probabilities than tokens', segment('[[1]]', '[[3,4]]', '[[-0.5]]'), /turn 0: needs one finite/],
  ['a null log-probability', segment('[[1]]', '[[3]]', '[[null]]'), /turn 0: needs one finite/],
  ['a truth value as token', segment('[[true]]', '[[3]]', '[[-0.5]]'), /turn 0: token ids/],
  ['a decimal number as token', segment('[[1.0, 2]]', '[[3]]', '[[-0.5]]'), /a token id is not an integer/],
])('all turns are dropped, with the reason: %s', (_, details, problem) => {
  expect(read(details)).toEqual({ turns: [], problem: expect.stringMatching(problem) });
});

test('no details are no problem', () => {
  expect(readRolloutTurns(undefined, '{}')).toEqual({ turns: [], problem: null });
  expect(read('[]')).toEqual({ turns: [], problem: null });
});
