import { rolloutMeters } from '../core/measures/billing.ts';
import { addMeters } from '../core/measures/meters.ts';
import { trialFigures } from '../core/measures/trial-figures.ts';
import { answeredMeters, lostIn, lostMeters, sentIn } from '../core/recordings/books.ts';
import { isAnswered } from '../core/recordings/paid-call.ts';
import type { TrialSpec, TrialSummary } from '../core/run/trial.ts';
import { CONTEXT_OVERFLOW } from '../core/tokens/datums.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { TrialRecord } from '../services/gateway/index.ts';
import type { TrialRun } from '../services/harbor/index.ts';
import type { PaidCalls } from './paid-calls.ts';
import type { RunRecord } from './run-records.ts';

/** What of harbor's outcome the run keeps. */
export type Outcome = Pick<
  TrialRun,
  'reward' | 'executed' | 'passed' | 'retry' | 'exceptionType' | 'exceptionMessage' | 'infraReason' | 'stopReason'
> & {
  readonly gradedScore: number | null;
  readonly totalMs: number | null;
};

/** The outcome of a trial that says nothing about the model. */
export function notRun(exceptionType: string, message: string): Outcome {
  return {
    reward: null,
    executed: false,
    passed: false,
    retry: 'again',
    exceptionType,
    exceptionMessage: message,
    infraReason: message,
    stopReason: null,
    gradedScore: null,
    totalMs: null,
  };
}

/** The trial as history keeps it; its tokens go to the blob store. `calls` says what all its attempts took, `seen` what the last one saw. */
export async function summarize(
  record: RunRecord,
  spec: TrialSpec,
  outcome: Outcome,
  seen: TrialRecord,
  calls: PaidCalls,
  blobs: BlobStore,
): Promise<TrialSummary> {
  const stopReason = seen.overflow ? CONTEXT_OVERFLOW : outcome.stopReason;
  const { spans } = seen;
  const figures = trialFigures(spans, { maxTokens: record.config.sampling.max_tokens, who: spec.who });
  return {
    ...figures,
    trialId: spec.trialId,
    taskId: spec.task.id,
    spans: spans.length > 0 ? await blobs.of(record.runId).put(encodeEpisode({ trial: spec.trialId, spans, stopReason })) : null,
    reward: outcome.reward,
    executed: outcome.executed,
    passed: outcome.passed,
    retry: outcome.retry,
    gradedScore: outcome.gradedScore,
    exceptionType: outcome.exceptionType,
    exceptionMessage: (outcome.infraReason ?? outcome.exceptionMessage)?.slice(0, 500) ?? null,
    stopReason,
    maskedTokens: seen.maskedTokens,
    overflow: seen.overflow,
    lengthStops: seen.lengthStops,
    fragments: Object.values(seen.fragments).reduce((sum, count) => sum + count, 0),
    ...booksOf(spec, figures, seen, calls),
    wallMs: outcome.totalMs ?? 0,
  };
}

type Books = Pick<TrialSummary, 'meters' | 'sent' | 'lost' | 'replayedTokens' | 'reboughtTokens'>;

/** Calls of the episode are metered as one conversation, all others at their own full price: what reached nobody is paid for as well. */
function booksOf(spec: TrialSpec, figures: Pick<TrialSummary, 'meters'>, { wasted }: TrialRecord, calls: PaidCalls): Books {
  const all = calls.calls;
  const answered = all.filter(isAnswered);
  const unused = answered.filter((call) => !calls.wasHanded(call));
  const unheard = { uniqueTokens: wasted.promptTokens + wasted.sampledTokens, cachedTokens: 0, sampledTokens: wasted.sampledTokens };
  const inherited = answered.filter((call) => calls.isInherited(call));
  const tokens = (handed: boolean) =>
    inherited.filter((call) => calls.wasHanded(call) === handed).reduce((sum, { outcome }) => sum + outcome.sampledTokens, 0);
  return {
    meters: addMeters(figures.meters, rolloutMeters(unheard, spec.who), answeredMeters(unused), lostMeters(all)),
    sent: sentIn(all),
    lost: lostIn(all, spec.trialId),
    replayedTokens: tokens(true),
    reboughtTokens: tokens(false),
  };
}
