import type { RunConfig } from '../config/schema.ts';
import { forecastUsd } from '../estimate/forecast.ts';
import type { MoneySoFar } from '../run/results.ts';
import type { BatchFigures } from '../training/batch.ts';
import type { BatchStats } from './batch-stats.ts';
import type { TripwireCheck } from './guards.ts';
import type { BatchHealth } from './health.ts';
import type { MeterTokens } from './meters.ts';
import { type Pricing, spendOf } from './spend.ts';

/**
 * What was trained in a step, summed over its optimizer updates. Token counts are those of the source datums; `datums` counts the
 * sequences sent: under `topk_ce` each replica is one.
 */
export type TrainedBatch = BatchFigures & {
  /** The loss of each update, in order; null where the service does not tell. */
  readonly losses: readonly (number | null)[];
  /** The gradient norm of each update; null likewise. */
  readonly gradNorms: readonly (number | null)[];
};

/** Sums over the datums that a batch's episodes were made into. */
export type BuiltDatums = {
  readonly datums: number;
  readonly fragments: number;
  readonly overflowDrops: number;
  readonly overlongDrops: number;
  /** Sampled tokens without a usable log-probability. */
  readonly maskedTokens: number;
};

export type StepFacts = {
  readonly step: number;
  readonly tasks: number;
  readonly loss: RunConfig['train']['loss'];
  readonly samplerPath: string;
  /** Name of the weights that sampled. */
  readonly sampler: string;
  /** Steps trained since the weights that sampled this batch. */
  readonly samplerStalenessSteps: number;
  readonly stats: BatchStats;
  readonly health: BatchHealth;
  readonly built: BuiltDatums;
  /** Trials whose agent was refused a call because its prompt did not fit into the context. */
  readonly overflowTrials: number;
  /** Calls that opened a fragment, by cause; what could not be read as a tool call; control tokens that somebody wrote as text. */
  readonly fragmentCauses: Readonly<Record<string, number>>;
  readonly unreadableCalls: number;
  readonly lookAlikes: number;
  readonly trained: TrainedBatch;
  readonly tripwire: Pick<TripwireCheck, 'guard' | 'entropyRatio' | 'lengthRatio'>;
  readonly warnings: readonly string[];
  /** Tokens of this step alone. */
  readonly meters: MeterTokens;
  readonly replayedTokens: number;
  readonly reboughtTokens: number;
  readonly lostCalls: number;
  readonly pricing: Pricing;
  readonly money: MoneySoFar;
  readonly wallMs: number;
  readonly trainMs: number;
};

/**
 * One step as it is written to `metrics.jsonl`; docs/metrics.md has every field. A rate stands beside its denominator and is stored as 0
 * over nothing: read it through `readRate`.
 */
export type MetricsRow = ReturnType<typeof metricsRow>;

/** Makes a step's row: counts, rates beside their denominators, nats per token, and USD of what has a price. A null was not measured. */
export function metricsRow(facts: StepFacts) {
  const { stats, health, built, trained, tripwire, meters, money } = facts;
  const { baseline } = tripwire.guard;
  const { usd, blindTo } = spendOf(facts.pricing, meters);
  const spentUsd = money.spentUsd + usd;
  return {
    step: facts.step,
    tasks: facts.tasks,
    trials: stats.trials,
    passed_trials: stats.passedTrials,
    solve_rate: stats.solveRate,
    graded_solve_rate: stats.gradedSolveRate,
    graded_trials: stats.gradedTrials,
    raw_solve_rate: stats.rawSolveRate,
    executed_trials: stats.executedTrials,
    infra_failed_trials: stats.infraFailedTrials,
    scaffold_loss_rate: stats.scaffoldLossRate,
    stop_reason_trials: stats.stopReasonTrials,
    stop_reason_counts: stats.stopReasonCounts,
    empty_span_trials: stats.emptySpanTrials,
    truncated_spans: stats.truncatedSpans,
    datums: trained.datums,
    built_datums: built.datums,
    fragments: built.fragments,
    fragment_causes: facts.fragmentCauses,
    fragmentation_rate: built.datums === 0 ? 0 : built.fragments / built.datums,
    unreadable_calls: facts.unreadableCalls,
    look_alikes: facts.lookAlikes,
    overflow_trials: facts.overflowTrials,
    overflow_drops: built.overflowDrops,
    overlong_drops: built.overlongDrops,
    mismatch_drops: trained.mismatchDrops,
    clipped_tokens: trained.clippedTokens,
    optimizer_updates: trained.losses.length,
    loss_tokens: trained.lossTokens,
    context_tokens: trained.contextTokens,
    masked_tokens: built.maskedTokens,
    reverse_kl_per_token: trained.reverseKlNatsPerToken,
    kl_tokens: trained.klTokens,
    entropy_per_token: health.entropyNatsPerToken,
    entropy_tokens: health.scoredTokens,
    mean_generation_tokens: health.sampledTokensPerEpisode,
    generation_episodes: health.episodes,
    entropy_baseline: baseline?.entropyNatsPerToken ?? null,
    entropy_ratio: tripwire.entropyRatio,
    generation_tokens_baseline: baseline?.sampledTokensPerEpisode ?? null,
    generation_tokens_ratio: tripwire.lengthRatio,
    reward_mean: stats.rewardMean,
    loss: facts.loss,
    advantage_mean: trained.advantageMean,
    advantage_std: trained.advantageStd,
    clip_fraction: trained.lossTokens === 0 ? 0 : trained.clippedTokens / trained.lossTokens,
    pg_loss: meanOfTold(trained.losses),
    grad_norm: trained.gradNorms.at(-1) ?? null,
    sampler: facts.sampler,
    sampler_path: facts.samplerPath,
    sampler_staleness_steps: facts.samplerStalenessSteps,
    student_prefill_tokens: meters.student_prefill ?? 0,
    student_cached_prefill_tokens: meters.student_cached_prefill ?? 0,
    student_sample_tokens: meters.student_sample ?? 0,
    student_train_tokens: meters.student_train ?? 0,
    teacher_prefill_tokens: meters.teacher_prefill ?? 0,
    teacher_cached_prefill_tokens: meters.teacher_cached_prefill ?? 0,
    teacher_sample_tokens: meters.teacher_sample ?? 0,
    replayed_tokens: facts.replayedTokens,
    rebought_tokens: facts.reboughtTokens,
    lost_calls: facts.lostCalls,
    usd,
    cumulative_usd: spentUsd,
    unpriced_meters: blindTo,
    forecast_usd: forecastUsd({
      spentUsd,
      stepUsd: [...money.stepUsd, usd],
      remainingSteps: money.stepsAhead,
      remainingEvalUsd: money.evaluationsAheadUsd,
    }),
    warnings: facts.warnings,
    wall_ms: facts.wallMs,
    train_ms: facts.trainMs,
  };
}

function meanOfTold(losses: readonly (number | null)[]): number | null {
  const told = losses.filter((loss) => loss !== null);
  return told.length === 0 ? null : told.reduce((sum, loss) => sum + loss, 0) / told.length;
}
