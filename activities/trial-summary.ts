import { rolloutMeters } from '../core/measures/billing.ts';
import { addMeters } from '../core/measures/meters.ts';
import { spendOf } from '../core/measures/spend.ts';
import { trialFigures } from '../core/measures/trial-figures.ts';
import { answeredMeters, lostIn, lostMeters, sentIn } from '../core/recordings/books.ts';
import { isAnswered } from '../core/recordings/paid-call.ts';
import type { TrialSpec, TrialSummary } from '../core/run/trial.ts';
import { CONTEXT_OVERFLOW } from '../core/tokens/datums.ts';
import { encodeEpisode } from '../core/tokens/episode-codec.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { TrialRecord } from '../services/gateway/index.ts';
import { exceptionRow, type TrialRun } from '../services/harbor/index.ts';
import type { PaidCalls } from './paid-calls.ts';
import type { RunRecord } from './run-records.ts';

/** What a trial cost, and how much of it came from the books of attempts that died. */
export type PaidTrial = Pick<TrialSummary, 'meters' | 'usd' | 'sent' | 'lost' | 'replayedTokens' | 'reboughtTokens'>;

/** What of harbor's outcome the run keeps. */
export type Outcome = Pick<
  TrialRun,
  'reward' | 'executed' | 'passed' | 'retry' | 'exceptionType' | 'exceptionMessage' | 'infraReason' | 'stopReason' | 'fault' | 'setAside'
> & {
  readonly gradedScore: number | null;
  readonly totalMs: number | null;
};

/** The outcome of a trial that says nothing about the model: it was given up under this name. */
export function notRun(exceptionType: string, message: string): Outcome {
  const { fault, retry } = exceptionRow(exceptionType, 'agent');
  return {
    reward: null,
    executed: false,
    passed: false,
    retry,
    fault,
    setAside: null,
    exceptionType,
    exceptionMessage: message,
    infraReason: message,
    stopReason: null,
    gradedScore: null,
    totalMs: null,
  };
}

/** The trial as history keeps it, without its files; its tokens go to the blob store. `calls` says what all its attempts took, `seen` what the last one saw. */
export async function summarize(
  record: RunRecord,
  spec: TrialSpec,
  outcome: Outcome,
  seen: TrialRecord,
  calls: PaidCalls,
  blobs: BlobStore,
): Promise<TrialSummary> {
  const limit = limitReached(seen, record.config.rollout);
  const stopReason = limit ?? outcome.stopReason;
  const { reward, executed, passed, retry } = limit === null ? outcome : asItStands(outcome);
  const { spans } = seen;
  const { first: _, ...fragmentCauses } = seen.fragments;
  return {
    ...figuresOf(record, spec, seen),
    trialId: spec.trialId,
    taskId: spec.task.id,
    spans: spans.length > 0 ? await blobs.of(record.runId).put(encodeEpisode({ trial: spec.trialId, spans, stopReason })) : null,
    files: null,
    reward,
    executed,
    passed,
    retry,
    gradedScore: outcome.gradedScore,
    exceptionType: outcome.exceptionType,
    exceptionMessage: ((executed ? null : outcome.infraReason) ?? outcome.exceptionMessage)?.slice(0, 500) ?? null,
    fault: outcome.fault,
    stopReason,
    maskedTokens: seen.maskedTokens,
    overflow: seen.overflow,
    lengthStops: seen.lengthStops,
    fragmentCauses,
    unreadableCalls: seen.unreadableCalls,
    lookAlikes: seen.lookAlikes,
    ...paidIn(record, spec, seen, calls),
    wallMs: outcome.totalMs ?? 0,
  };
}

/**
 * What ended the trial at the gateway, whatever its agent says. Apart from an overflow it is graded as it stands, and trained on. An agent
 * that may compact its history goes on after an overflow: then only one that no call followed ended it.
 */
function limitReached(seen: TrialRecord, { compaction }: Pick<RunRecord['config']['rollout'], 'compaction'>): string | null {
  const { overflow, overflowAfterCalls, usdLimited, tokenLimited, callLimited, timeLimited } = seen;
  if (overflow && !(compaction && (overflowAfterCalls ?? 0) < seen.calls)) return CONTEXT_OVERFLOW;
  if (usdLimited) return 'usd_limit';
  if (tokenLimited) return 'token_limit';
  if (callLimited) return 'call_limit';
  return timeLimited ? 'time_limit' : null;
}

/** A call that was refused for a limit is no failure of the model, whatever the agent makes of the refusal: what it left is graded as it stands. */
function asItStands(outcome: Outcome): Pick<Outcome, 'reward' | 'executed' | 'passed' | 'retry'> {
  const { setAside: reward } = outcome;
  return reward === null ? outcome : { reward, executed: true, passed: reward === 1, retry: 'never' };
}

const figuresOf = ({ config }: RunRecord, { who }: TrialSpec, { spans }: TrialRecord) =>
  trialFigures(spans, { maxTokens: config.sampling.max_tokens, who });

/**
 * What the trial took of the service, in all its attempts. Calls of the episode are metered as one conversation, all others at their own
 * full price: what reached nobody is paid for as well.
 */
export function paidIn(record: RunRecord, spec: TrialSpec, seen: TrialRecord, calls: PaidCalls): PaidTrial {
  const { wasted } = seen;
  const all = calls.calls;
  const answered = all.filter(isAnswered);
  const unused = answered.filter((call) => !calls.wasHanded(call));
  const unheard = { uniqueTokens: wasted.promptTokens + wasted.sampledTokens, cachedTokens: 0, sampledTokens: wasted.sampledTokens };
  const inherited = answered.filter((call) => calls.isInherited(call));
  const tokens = (handed: boolean) =>
    inherited.filter((call) => calls.wasHanded(call) === handed).reduce((sum, { outcome }) => sum + outcome.sampledTokens, 0);
  const heard = figuresOf(record, spec, seen).meters;
  const meters = addMeters(heard, rolloutMeters(unheard, spec.who), answeredMeters(unused), lostMeters(all));
  return {
    meters,
    usd: spendOf(record.config.pricing, meters).usd,
    sent: sentIn(all),
    lost: lostIn(all, spec.trialId),
    replayedTokens: tokens(true),
    reboughtTokens: tokens(false),
  };
}
