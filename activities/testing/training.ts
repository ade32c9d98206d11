import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { BlobRef, TrialId } from '../../core/ids.ts';
import { NO_USAGE } from '../../core/measures/usage.ts';
import type { KeptTrials, PlayedSlot } from '../../core/run/kept-trials.ts';
import type { TrainingRef } from '../../core/run/results.ts';
import { trialOf } from '../../core/run/testing/facts.ts';
import { encodeScoredEpisode } from '../../core/tokens/scored-codec.ts';
import type { BlobStore } from '../../services/blobs/blob-store.ts';
import { putJson } from '../../services/blobs/json.ts';
import type { TrainingActivities } from '../training.ts';

/** A batch of scored episodes that a test trains on. They are made up from their numbers alone, and the same every time. */
export async function scoredBatch(blobs: BlobStore, runId: string, step: number, count = 3): Promise<KeptTrials> {
  return { lists: [await putJson(blobs.of(runId), await scoredTrials(blobs, runId, step, count))], count };
}

/** The trials of such a batch. */
export async function scoredTrials(blobs: BlobStore, runId: string, step: number, count: number): Promise<PlayedSlot[]> {
  const commands = ['cp sun map\n', 'rm key\n', 'echo 7 > ice\n', 'mv oak fig\n'];
  return Promise.all(
    Array.from({ length: count }, async (_, i): Promise<PlayedSlot> => {
      const trial = `s${step}-${i}` as TrialId;
      const prompt = `files a${i} b${step}\n$ `;
      const text = prompt + commands[(step + i) % commands.length];
      const tokens = Int32Array.from(text, (char) => char.charCodeAt(0));
      const mask = Uint8Array.from(tokens, (_, at) => (at < prompt.length ? 0 : 1));
      const logprobs = Float64Array.from(tokens, (_, at) => (at < prompt.length ? 0 : -4 - ((step + i + at) % 5) / 4));
      const row = logprobs.map((logprob, at) => (at < prompt.length ? Number.NaN : logprob + ((at * 7 + step) % 11) / 8 - 0.5));
      const datum = { trial, fragment: 0, tokens, mask, logprobs };
      const scored = await blobs.of(runId).put(encodeScoredEpisode({ trial, datums: [datum], rows: [row] }));
      const counts = { datums: 1, fragments: 0, lossTokens: tokens.length - prompt.length };
      const score = {
        trialId: trial,
        scored,
        candidates: null,
        ...counts,
        overflowDropped: false,
        overlongDropped: false,
        ...NO_USAGE,
        usd: 0,
        trainUsd: 0,
      };
      return { slot: trial, trial: trialOf({ trialId: trial }), score };
    }),
  );
}

/** What a run asks of its training, in order. A batch is known by its step. */
export type Wish = { readonly batch: number; readonly trials: KeptTrials } | { readonly state: string } | { readonly sampler: string };

/** Three steps with their saves. */
export async function threeSteps(blobs: BlobStore, runId: string): Promise<readonly Wish[]> {
  const batch = async (step: number) => ({ batch: step, trials: await scoredBatch(blobs, runId, step) });
  return [
    { sampler: 'step-0000' },
    await batch(1),
    { state: 'step-0001' },
    await batch(2),
    { sampler: 'step-0002' },
    await batch(3),
    { state: 'step-0003' },
    { sampler: 'step-0003' },
  ];
}

/** All that came of it. */
export type Trained = {
  readonly training: TrainingRef;
  readonly losses: readonly (number | null)[];
  readonly gradNorms: readonly (number | null)[];
  readonly paths: readonly string[];
  readonly notices: readonly string[];
  readonly trainedTokens: number;
  readonly lostTokens: number;
  /** Of published weights: tokens that they were asked for at once, and calls of which nobody knows. */
  readonly sampledTokens: number;
  readonly lostSamples: number;
  readonly meteredTokens: number;
};

/** An attempt that dies on purpose is no news. */
const QUIET = new DefaultLogger('ERROR');

/** Does one activity in a given attempt of it. */
export type InAttempt = <T>(activityId: string, work: (activities: TrainingActivities) => Promise<T>) => Promise<T>;

/** Does all that a run wishes, each wish an activity of its own, and gathers what it brings. */
export async function trainAll(run: BlobRef, wishes: readonly Wish[], attempt: InAttempt): Promise<Trained> {
  let training = await attempt('open', (activities) => activities.openTraining({ run }));
  const losses: (number | null)[] = [];
  const gradNorms: (number | null)[] = [];
  const paths: string[] = [];
  const notices: string[] = [];
  const tokens = { trained: 0, lost: 0, sampled: 0, lostSamples: 0, metered: 0 };
  for (const [i, wish] of wishes.entries()) {
    const made = await attempt(`wish-${i}`, async (activities) => {
      if ('state' in wish) return activities.saveState({ run, training, name: wish.state });
      if ('sampler' in wish) return activities.saveSampler({ run, training, name: wish.sampler });
      const order = { run, step: wish.batch, sampler: 's', training, trials: wish.trials };
      return activities.trainBatch(order);
    });
    training = made.training;
    notices.push(...made.notices);
    tokens.trained += made.sent.trainedTokens;
    tokens.lost += made.lost.reduce((sum, { kind, promptTokens }) => sum + (kind === 'train' ? promptTokens : 0), 0);
    tokens.sampled += made.sent.sampledTokens;
    tokens.lostSamples += made.lost.filter(({ kind }) => kind === 'sample').length;
    tokens.metered += made.meters.student_train ?? 0;
    if ('path' in made) paths.push(made.path);
    else {
      losses.push(...made.trained.losses);
      gradNorms.push(...made.trained.gradNorms);
    }
  }
  return {
    training,
    losses,
    gradNorms,
    paths,
    notices,
    trainedTokens: tokens.trained,
    lostTokens: tokens.lost,
    sampledTokens: tokens.sampled,
    lostSamples: tokens.lostSamples,
    meteredTokens: tokens.metered,
  };
}

export const inActivity = <T>(activityId: string, attempt: number, work: () => Promise<T>): Promise<T> =>
  new MockActivityEnvironment({ activityId, attempt }, { logger: QUIET }).run(work);
