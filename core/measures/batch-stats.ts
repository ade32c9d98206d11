import type { Span } from '../tokens/span.ts';

/** What a batch's statistics need of one trial; no tokens. */
export type TrialTally = {
  /** Null when the grader gave none. */
  readonly reward: number | null;
  readonly passed: boolean;
  /** False when the infrastructure or the grader failed: the trial says nothing about the model. */
  readonly executed: boolean;
  readonly stopReason: string | null;
  /** Share of its tests that passed, null without a test report; see `gradedScore`. */
  readonly gradedScore: number | null;
  readonly calls: number;
  readonly truncatedCalls: number;
};

/** Statistics of a batch of trials. Rates are stored as numbers; one over nothing is stored as 0 and means null (`readRate`). */
export type BatchStats = {
  readonly trials: number;
  readonly trialsWithSpans: number;
  readonly executedTrials: number;
  readonly infraFailedTrials: number;
  /** Passed over executed trials. */
  readonly solveRate: number;
  readonly passedTrials: number;
  /** Passed over all trials. */
  readonly rawSolveRate: number;
  /** Mean graded score over the executed trials that have one. */
  readonly gradedSolveRate: number;
  readonly gradedTrials: number;
  /** Mean reward over all trials, a missing one counting 0. */
  readonly rewardMean: number;
  readonly emptySpanTrials: number;
  readonly truncatedSpans: number;
  readonly truncatedSpanTrials: number;
  /** By stop reason; `unknown` where a trial does not say. */
  readonly stopReasonCounts: Readonly<Record<string, number>>;
  /** Trials that did not end by submitting, over those that say how they ended. */
  readonly scaffoldLossRate: number;
  /** Trials that say how they ended. */
  readonly stopReasonTrials: number;
};

export const SUBMITTED = 'submitted';

/** Counts a batch's trials, all of them and those that were executed, and how they ended. */
export function batchStats(trials: readonly TrialTally[]): BatchStats {
  const executed = trials.filter((trial) => trial.executed);
  const scores = executed.flatMap((trial) => (trial.gradedScore === null ? [] : [trial.gradedScore]));
  const stops = trials.flatMap((trial) => (trial.stopReason ? [trial.stopReason] : []));
  const trialsWithSpans = trials.filter((trial) => trial.calls > 0).length;
  const passedTrials = executed.filter((trial) => trial.passed).length;
  return {
    trials: trials.length,
    trialsWithSpans,
    executedTrials: executed.length,
    infraFailedTrials: trials.length - executed.length,
    passedTrials,
    solveRate: share(passedTrials, executed.length),
    rawSolveRate: share(passedTrials, trials.length),
    gradedSolveRate: share(sum(scores), scores.length),
    gradedTrials: scores.length,
    rewardMean: share(sum(trials.map((trial) => trial.reward ?? 0)), trials.length),
    emptySpanTrials: trials.length - trialsWithSpans,
    truncatedSpans: sum(trials.map((trial) => trial.truncatedCalls)),
    truncatedSpanTrials: trials.filter((trial) => trial.truncatedCalls > 0).length,
    stopReasonCounts: countStops(trials),
    scaffoldLossRate: share(stops.filter((stop) => stop !== SUBMITTED).length, stops.length),
    stopReasonTrials: stops.length,
  };
}

/** Share of the resolved tests that passed; null when no test was resolved. */
export function gradedScore(tests: { readonly passed: number; readonly resolved: number } | null): number | null {
  return tests === null || tests.resolved === 0 ? null : tests.passed / tests.resolved;
}

/** Calls that sampled as many tokens as they were allowed: their answers are cut off. */
export function truncatedCalls(spans: readonly Pick<Span, 'sampled'>[], maxTokens: number): number {
  return spans.filter((span) => span.sampled.length >= maxTokens).length;
}

function countStops(trials: readonly TrialTally[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const trial of trials) {
    const stop = trial.stopReason || 'unknown';
    counts[stop] = (counts[stop] ?? 0) + 1;
  }
  return counts;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function share(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
