import type { Saved } from '../../activities/training.ts';
import type { BlobRef, SamplerPath } from '../../core/ids.ts';
import type { Usage } from '../../core/measures/usage.ts';
import type { EpisodeScore, TrialSummary } from '../../core/run/trial.ts';
import { decodeEpisode } from '../../core/tokens/episode-codec.ts';
import { decodeScoredEpisode } from '../../core/tokens/scored-codec.ts';
import type { BlobStore } from '../../services/blobs/blob-store.ts';
import { promptDigest } from '../../trainer/service/call-log.ts';
import type { BookedCall, RunBooks } from './books.ts';
import type { ActivityRun, RunHistory } from './histories.ts';

/** A trial with the attempts that it took. */
export type FinishedTrial = { readonly summary: TrialSummary; readonly attempts: number; readonly completedAtMs: number };

/** What the run knows of its calls, and where it has that from. */
export type Books = RunBooks & {
  readonly usage: Usage;
  readonly trials: readonly FinishedTrial[];
  readonly scores: readonly EpisodeScore[];
};

/** A run's books: what it says that it took, and call by call what the blob store keeps. */
export async function booksOf({ activities }: RunHistory, usage: Usage, blobs: BlobStore): Promise<Books> {
  const trials = finishedTrials(activities);
  const sampled = await Promise.all(trials.map(({ summary }) => sampledCalls(summary, blobs)));
  const scores = activities.flatMap(({ type, result }) => (type === 'scoreEpisode' && result !== null ? [result as EpisodeScore] : []));
  const scored = await Promise.all(scores.map((score) => scoredCalls(score, blobs)));
  return {
    usage,
    sent: usage.sent,
    lost: usage.lost,
    trials,
    scores,
    kept: [...sampled.flatMap(({ calls }) => calls), ...scored.flat()],
    unheard: sampled.flatMap(({ unheard }) => (unheard.prompt > 0 ? [unheard] : [])),
    firstCalls: activities.flatMap(({ type, result }) =>
      type === 'saveSampler' && result !== null ? firstCallsOf(result as Saved<SamplerPath>) : [],
    ),
  };
}

/** Nothing else is sampled when weights are published. */
function firstCallsOf({ path, sent: { promptTokens, sampledTokens: calls } }: Saved<SamplerPath>): RunBooks['firstCalls'] {
  return calls === 0 ? [] : [{ of: path, calls, prompt: promptTokens / calls }];
}

function finishedTrials(activities: readonly ActivityRun[]): FinishedTrial[] {
  return activities.flatMap(({ type, attempts, completedAtMs, result }) =>
    type === 'runTrial' && completedAtMs !== null ? [{ summary: result as TrialSummary, attempts, completedAtMs }] : [],
  );
}

type SampledCalls = { readonly calls: readonly BookedCall[]; readonly unheard: RunBooks['unheard'][number] };

async function sampledCalls({ trialId, spans: ref, sent }: TrialSummary, blobs: BlobStore): Promise<SampledCalls> {
  const spans = ref === null ? [] : decodeEpisode(await blobs.get(ref as BlobRef)).spans;
  const calls = spans.map(({ prompt, sampled }): BookedCall => {
    return { kind: 'sample', of: trialId, digest: promptDigest(prompt), sampled: sampled.length };
  });
  const kept = spans.reduce((sum, { prompt, sampled }) => ({ prompt: sum.prompt + prompt.length, sampled: sum.sampled + sampled.length }), {
    prompt: 0,
    sampled: 0,
  });
  return { calls, unheard: { of: trialId, prompt: sent.promptTokens - kept.prompt, sampled: sent.sampledTokens - kept.sampled } };
}

async function scoredCalls({ trialId, scored }: EpisodeScore, blobs: BlobStore): Promise<BookedCall[]> {
  if (scored === null) return [];
  const { datums } = decodeScoredEpisode(await blobs.get(scored as BlobRef));
  return datums.map(({ tokens }) => ({ kind: 'score', of: trialId, digest: promptDigest(tokens), sampled: 0 }));
}
