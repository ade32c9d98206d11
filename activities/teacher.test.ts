import { MockActivityEnvironment } from '@temporalio/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TrialId } from '../core/ids.ts';
import type { EpisodeScore } from '../core/run/trial.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import { decodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import type { Sampler } from '../services/tinker/index.ts';
import type { ModelAccess } from './model-access.ts';
import { createTeacherActivities } from './teacher.ts';
import { Project } from './testing/project.ts';

let project: Project;
beforeEach(async () => {
  project = await Project.make();
});
afterEach(() => project[Symbol.asyncDispose]());

const TRIAL = 'p-s0001-000-0' as TrialId;
const span = (callIndex: number, prompt: number[], sampled: number[]) => ({
  callIndex,
  prompt: Int32Array.from(prompt),
  sampled: Int32Array.from(sampled),
  logprobs: Float64Array.from(sampled, () => -0.5),
  stop: 'stop' as const,
  sampler: 'step-0000',
});

/** Scores every token with a number of its own call. `dies` ends the worker before the answer of that call. */
function teacher(asked: number[][], dies: (call: number) => boolean) {
  const promptLogprobs = async (tokens: Int32Array) => {
    const call = asked.push([...tokens]);
    if (dies(call)) throw new Error('the worker died');
    return { logprobs: Float64Array.from(tokens, (_, i) => -(call + i / 10)), topk: null, promptCacheHitTokens: 2, sampledTokens: 1 };
  };
  const withSampler = (_: unknown, work: (sampler: Sampler) => Promise<unknown>) => work({ promptLogprobs } as unknown as Sampler);
  return { withSampler, longestWait: () => null } as unknown as ModelAccess;
}

it('an episode whose scoring was cut off is scored on: what was paid for is read from its book, what was lost is listed', async () => {
  const pinned = await project.resolve();
  const spans = await project.blobs
    .of('first')
    .put(encodeEpisode({ trial: TRIAL, spans: [span(0, [1, 2], [3, 4]), span(1, [9, 8, 7], [6])], stopReason: null }));
  const order = { run: pinned.ref, trialId: TRIAL, spans, stopReason: null, sampler: 'step-0000' };
  const score = (attempt: number, asked: number[][], dies: (call: number) => boolean) => {
    const { records, blobs, objects } = project;
    const { scoreEpisode } = createTeacherActivities({ records, blobs, objects, models: teacher(asked, dies) });
    return new MockActivityEnvironment({ attempt }).run(scoreEpisode, order) as Promise<EpisodeScore>;
  };
  const [first, second, third]: [number[][], number[][], number[][]] = [[], [], []];
  await expect(score(1, first, (call) => call === 2)).rejects.toThrow('the worker died');
  expect(first).toHaveLength(2);

  const scored = await score(2, second, () => false);
  expect(second).toEqual([[9, 8, 7, 6]]);
  expect(scored.sent).toEqual({ promptTokens: 0, sampledTokens: 2, scoredTokens: 8, trainedTokens: 0 });
  expect(scored.lost).toEqual([{ kind: 'score', of: TRIAL, callIndex: 1, promptTokens: 4, sampledTokens: 1 }]);
  expect(scored.meters).toEqual({ teacher_prefill: 8 - 4 + 4, teacher_cached_prefill: 4 });
  const { rows } = decodeScoredEpisode(await project.blobs.get(scored.scored as NonNullable<typeof scored.scored>));
  expect(rows.map((row) => [...row])).toEqual([
    [Number.NaN, Number.NaN, -1.2, -1.3],
    [Number.NaN, Number.NaN, Number.NaN, -1.3],
  ]);

  // A result that was lost on the way to the server costs nothing more.
  expect(await score(3, third, () => false)).toEqual(scored);
  expect(third).toEqual([]);
});
