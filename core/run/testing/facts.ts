import type { BaselineReport } from '../../gate/baseline-report.ts';
import type { TrialId } from '../../ids.ts';
import type { TrainedBatch } from '../../measures/metrics-row.ts';
import { NO_USAGE } from '../../measures/usage.ts';
import { FRESH_ADAPTER, type TrainingRef } from '../../training/plan.ts';
import type { EvalResult, HoldoutLabel } from '../results.ts';
import type { TrialSummary } from '../trial.ts';

/** A trial for tests: it ran, passed and left no tokens, but for what the test names. */
export function trialOf(known: Partial<TrialSummary> = {}): TrialSummary {
  return {
    trialId: 'trial' as TrialId,
    taskId: 'a',
    spans: null,
    files: null,
    reward: 1,
    executed: true,
    passed: true,
    retry: 'never',
    gradedScore: null,
    exceptionType: null,
    exceptionMessage: null,
    fault: null,
    stopReason: 'submitted',
    calls: 1,
    truncatedCalls: 0,
    sampledTokens: 10,
    negLogprobNats: 5,
    scoredTokens: 10,
    maskedTokens: 0,
    overflow: false,
    lengthStops: 0,
    fragmentCauses: {},
    unreadableCalls: 0,
    lookAlikes: 0,
    ...NO_USAGE,
    meters: { student_sample: 10 },
    usd: 0,
    replayedTokens: 0,
    reboughtTokens: 0,
    wallMs: 5,
    ...known,
  };
}

/** An evaluation for tests: half of ten trials passed, but for what the test names. Trials and rate follow from the counts. */
export function evaluationOf(known: Partial<EvalResult> = {}): EvalResult {
  const { executed = 10, passed = executed / 2, infraFailed = 0 } = known;
  return {
    label: 'teacher',
    source: 'measured',
    model: { kind: 'base', model: 'm', version: 'm' },
    trials: executed + infraFailed,
    executed,
    passed,
    infraFailed,
    solveRate: executed === 0 ? null : passed / executed,
    perTask: [],
    ...NO_USAGE,
    usd: 0,
    trialUsd: null,
    wallMs: 5,
    ...known,
  };
}

/** What an earlier run measured on two tasks: every attempt at one passed, none at the other. */
export const importedOf = (label: HoldoutLabel, model: string, known: Partial<EvalResult> = {}): EvalResult =>
  evaluationOf({
    label,
    source: 'imported',
    model: { kind: 'base', model, version: model },
    trials: 6,
    executed: 6,
    passed: 3,
    solveRate: 0.5,
    perTask: [
      { taskId: 'x', executed: 3, passed: 3 },
      { taskId: 'y', executed: 3, passed: 0 },
    ],
    ...NO_USAGE,
    usd: 0,
    wallMs: 0,
    ...known,
  });

/** A training for tests: a model of which nothing was asked yet, or so many calls. */
export function trainingOf({ calls = 0, updates = 0 } = {}): TrainingRef {
  const at = { generation: 1, entry: 2 + 3 * calls, sessionId: 's', modelId: 's:train:0', nextSeqId: 1 + calls };
  return { base: FRESH_ADAPTER, head: null, updates, at };
}

/** The same training, so many calls later. */
export function after({ updates, at: { nextSeqId } }: TrainingRef, calls: number): TrainingRef {
  return trainingOf({ calls: nextSeqId - 1 + calls, updates: updates + Math.floor(calls / 2) });
}

/** A batch of one datum that was trained on, but for what the test names. */
export function trainedOf(known: Partial<TrainedBatch> = {}): TrainedBatch {
  return {
    datums: 1,
    lossTokens: 10,
    contextTokens: 5,
    losses: [1],
    gradNorms: [1],
    reverseKlNatsPerToken: 0.5,
    klTokens: 10,
    advantageMean: 0,
    advantageStd: 1,
    clippedTokens: 0,
    mismatchDrops: 0,
    ...known,
  };
}

/** A baseline for tests: three attempts at each of two tasks, half of them passed, with no counts by task, but for what the test names. */
export function baselineReportOf(known: Partial<BaselineReport> = {}): BaselineReport {
  return {
    name: 'baseline-teacher',
    provider_model: 't',
    base_model: 't',
    task_ids: ['x', 'y'],
    attempts: 3,
    trials: 6,
    solve_rate: 0.5,
    empty_span_trials: 0,
    executed_trials: 6,
    infra_failed_trials: 0,
    ...known,
  };
}
