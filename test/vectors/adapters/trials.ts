import { parseRunConfig } from '../../../core/config/parse.ts';
import { type BatchStats, batchStats, gradedScore, type TrialTally, truncatedCalls } from '../../../core/measures/batch-stats.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { runSteps, type StepsCase } from './metrics-steps.ts';
import { toSpan } from './raw-tokens.ts';
import { toToml } from './sections.ts';
import { ctrf, spans, trial } from './trial-files.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

export type RawTrial = {
  trial: string;
  reward: number;
  passed: boolean;
  stop_reason: string | null;
  infra_failed: boolean;
  tests: { passed: number; resolved: number } | null;
  calls: { prompt: number[]; sampled: number[]; logprobs: number[] }[];
};

export const toTally = (raw: RawTrial, maxTokens: number): TrialTally => ({
  reward: raw.reward,
  passed: raw.passed,
  executed: !raw.infra_failed,
  stopReason: raw.stop_reason,
  gradedScore: gradedScore(raw.tests),
  calls: raw.calls.length,
  truncatedCalls: truncatedCalls(raw.calls.map(toSpan), maxTokens),
});

function stats(input: { max_tokens: number; trials: RawTrial[] }, expected: unknown): Finding {
  const ours: BatchStats = batchStats(input.trials.map((raw) => toTally(raw, input.max_tokens)));
  return compare(expected, {
    trials: ours.trials,
    trials_with_spans: ours.trialsWithSpans,
    solve_rate: ours.solveRate,
    graded_solve_rate: ours.gradedSolveRate,
    graded_trials: ours.gradedTrials,
    raw_solve_rate: ours.rawSolveRate,
    executed_trials: ours.executedTrials,
    infra_failed_trials: ours.infraFailedTrials,
    empty_span_trials: ours.emptySpanTrials,
    truncated_spans: ours.truncatedSpans,
    truncated_span_trials: ours.truncatedSpanTrials,
    stop_reason_counts: ours.stopReasonCounts,
    scaffold_loss_rate: ours.scaffoldLossRate,
  });
}

type Row = Record<string, unknown>;
/** Our rows have more fields than theirs. */
const sharedFields = (row: Row, theirs: Row | undefined): Row =>
  Object.fromEntries(Object.entries(row).filter(([field]) => theirs === undefined || field in theirs));

function metricsRows(input: StepsCase, expected: { steps: { row: Row }[] }): Finding {
  const parsed = parseRunConfig(toToml(input.config), 'run.toml');
  if (!parsed.ok) return { difference: JSON.stringify(parsed.errors), refused: true };
  const steps = runSteps(input, parsed.config);
  return compare(expected, { steps: steps.map(({ row, stop }, i) => ({ row: sharedFields(row, expected.steps[i]?.row), stop })) });
}

export const trials: FamilyAdapter = { family: 'trials', kinds: { trial, ctrf, spans, batch_stats: stats, metrics_rows: metricsRows } };
