import { MockActivityEnvironment } from '@temporalio/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { TrialId } from '../core/ids.ts';
import type { EpisodeScore } from '../core/run/trial.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import { decodeScoredEpisode } from '../core/tokens/scored-codec.ts';
import { BadRequest, BillingPaused, RetryLater, type Sampler, type ScoreOptions } from '../services/tinker/index.ts';
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

/** Scores every token with a number of its own call. `fails` says how that call ends instead. */
function teacher(asked: number[][], fails: (call: number) => Error | null, standing: (string | undefined)[] = []) {
  const promptLogprobs = async (tokens: Int32Array, options: ScoreOptions) => {
    const call = asked.push([...tokens]);
    standing.push(options.standing);
    const error = fails(call);
    if (error) throw error;
    return { logprobs: Float64Array.from(tokens, (_, i) => -(call + i / 10)), topk: null, promptCacheHitTokens: 2, sampledTokens: 1 };
  };
  const sampling = (_: unknown, work: (sampler: Sampler) => Promise<unknown>) => work({ promptLogprobs } as unknown as Sampler);
  return { sampling, longestWait: () => null } as unknown as ModelAccess;
}

/** Attempts at scoring an episode of two sequences, of four tokens each. */
async function episode() {
  const pinned = await project.resolve();
  const spans = await project.blobs
    .of('first')
    .put(encodeEpisode({ trial: TRIAL, spans: [span(0, [1, 2], [3, 4]), span(1, [9, 8, 7], [6])], stopReason: null }));
  const order = { run: pinned.ref, trialId: TRIAL, spans, stopReason: null, sampler: 'step-0000' };
  return (attempt: number, models: ModelAccess) => {
    const { records, blobs, objects } = project;
    const { scoreEpisode } = createTeacherActivities({ records, blobs, objects, models });
    return new MockActivityEnvironment({ attempt }).run(scoreEpisode, order) as Promise<EpisodeScore>;
  };
}
const died = (at: number) => (call: number) => (call === at ? new Error('the worker died') : null);
const well = () => null;

it('an episode whose scoring was cut off is scored on: what was paid for is read from its book, what was lost is listed', async () => {
  const score = await episode();
  const [first, second, third]: [number[][], number[][], number[][]] = [[], [], []];
  await expect(score(1, teacher(first, died(2)))).rejects.toThrow('the worker died');
  expect(first).toHaveLength(2);

  const scored = await score(2, teacher(second, well));
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
  expect(await score(3, teacher(third, well))).toEqual(scored);
  expect(third).toEqual([]);
});

it.each([
  ['refuses a score until it is paid', 'asample', 'unpaid', undefined],
  ['keeps a score back until it is paid', 'retrieve_future', 'standing', 'req-7'],
] as const)('a service that %s: the run hears of the payment, and the call is no lost one', async (_, call, fate, requestId) => {
  const score = await episode();
  const unpaid = new BillingPaused('top up', { call, status: 402, requestId: 'req-7', fate });
  const standing: (string | undefined)[] = [];
  const [first, second]: [number[][], number[][]] = [[], []];
  await expect(
    score(
      1,
      teacher(first, (number) => (number === 1 ? unpaid : null)),
    ),
  ).rejects.toMatchObject({ type: 'BillingPaused' });
  const scored = await score(2, teacher(second, well, standing));
  expect(second).toEqual([[1, 2, 3, 4]]);
  expect(standing).toEqual([requestId]);
  expect(scored).toMatchObject({ lost: [], sent: { scoredTokens: 8, sampledTokens: 2 } });
});

it('a refused score is no lost call, one without a clear answer is', async () => {
  const score = await episode();
  const refused = new BadRequest('too long', { call: 'asample', status: 422, fate: 'refused' });
  const silent = new RetryLater('no answer', { call: 'asample', fate: 'unknown' });
  await expect(
    score(
      1,
      teacher([], (number) => (number === 1 ? refused : silent)),
    ),
  ).rejects.toThrow();
  expect((await score(2, teacher([], well))).lost).toEqual([{ kind: 'score', of: TRIAL, callIndex: 1, promptTokens: 4, sampledTokens: 1 }]);
});
