import { expect, it } from 'vitest';
import type { TrialId } from '../ids.ts';
import { buildDatums, prefixRuns } from './datums.ts';
import { decodeEpisode, encodeEpisode } from './episode-codec.ts';
import type { Episode, Span } from './span.ts';

const span = (callIndex: number, prompt: number[], sampled: number[]): Span => ({
  callIndex,
  prompt: Int32Array.from(prompt),
  sampled: Int32Array.from(sampled),
  logprobs: new Float64Array(sampled.length).fill(-0.5),
  stop: 'stop',
  sampler: 'step-0001',
});
/** Two calls, one that rewrites the second half of the history and goes on, and one that starts anew. */
const episode: Episode = {
  trial: 'run-a-t0' as TrialId,
  spans: [
    span(0, [1, 2], [3]),
    span(1, [1, 2, 3, 4], [5]),
    span(2, [1, 2, 3, 9], [6, 7]),
    span(3, [1, 2, 3, 9, 6, 7], [8]),
    span(4, [2], []),
  ],
  stopReason: null,
};

it('reads calls that extend one another into one array, and keeps others apart', () => {
  const { spans } = decodeEpisode(encodeEpisode(episode));
  const memoryOf = ({ prompt, sampled }: Span) => {
    expect(sampled.buffer).toBe(prompt.buffer);
    return prompt.buffer;
  };
  const memories = [...new Set(spans.map(memoryOf))];
  expect(memories.map(({ byteLength }) => byteLength / 4)).toEqual([5, 7, 1]);
  expect(prefixRuns(spans)).toEqual(prefixRuns(episode.spans));
});

it('a call is not taken for a part of the next one because they share memory', () => {
  const tokens = Int32Array.of(1, 2, 3, 4);
  const whole: Span = { ...span(0, [], []), prompt: tokens.subarray(0, 2), sampled: tokens.subarray(2, 3), logprobs: Float64Array.of(-1) };
  const elsewhere: Span = { ...whole, callIndex: 1, prompt: tokens.subarray(1, 4), sampled: tokens.subarray(3, 4) };
  const limits = { contextBudgetTokens: 64, maxDatumTokens: 64 };
  const { datums } = buildDatums([{ ...episode, spans: [whole, elsewhere] }], limits);
  expect(datums.map((datum) => [...datum.tokens])).toEqual([
    [1, 2, 3],
    [2, 3, 4, 4],
  ]);
});
