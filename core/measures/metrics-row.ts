import type { RunConfig } from '../config/schema.ts';
import type { GuardState } from '../run/results.ts';
import type { DatumStats } from '../tokens/datums.ts';
import type { BatchStats } from './batch-stats.ts';
import type { BatchHealth } from './health.ts';
import type { MeterTokens } from './meters.ts';
import { type Pricing, spendOf } from './spend.ts';

/** What was trained in a step, summed over its optimizer updates. Token counts are those of the source datums. */
export type TrainedBatch = {
  /** Sequences sent: replicas count one each under `topk_ce`. */
  readonly datums: number;
  readonly mismatchDrops: number;
  readonly lossTokens: number;
  readonly contextTokens: number;
  readonly clippedTokens: number;
  readonly advantageMean: number | null;
  readonly advantageStd: number | null;
  readonly reverseKlNatsPerToken: number | null;
  /** The loss of each update, in order; null where the service does not tell. */
  readonly losses: readonly (number | null)[];
  /** The gradient norm of each update; null likewise. */
  readonly gradNorms: readonly (number | null)[];
};

export type StepFacts = {
  readonly step: number;
  readonly tasks: number;
  readonly loss: RunConfig['train']['loss'];
  readonly samplerPath: string;
  /** Updates made since the weights that sampled this batch. */
  readonly samplerStalenessSteps: number;
  readonly stats: BatchStats;
  readonly health: BatchHealth;
  readonly built: Pick<DatumStats, 'fragments' | 'fragmentationRate' | 'overflowDrops' | 'overlongDrops' | 'maskedTokens'>;
  readonly trained: TrainedBatch;
  readonly tripwire: { readonly guard: GuardState; readonly entropyRatio: number | null; readonly lengthRatio: number | null };
  /** Tokens of this step alone. */
  readonly meters: MeterTokens;
  readonly pricing: Pricing;
  /** What the run had cost before this step. */
  readonly spentBeforeUsd: number;
  readonly forecastUsd: number | null;
};

/** One step as it is written to `metrics.jsonl`. Rates stand beside their denominators; read them through `readRate`. */
export type MetricsRow = ReturnType<typeof metricsRow>;

export function metricsRow(facts: StepFacts) {
  const { stats, health, built, trained, tripwire, meters } = facts;
  const { baseline } = tripwire.guard;
  const { usd, blindTo } = spendOf(facts.pricing, meters);
  return {
    step: facts.step,
    tasks: facts.tasks,
    trials: stats.trials,
    solve_rate: stats.solveRate,
    graded_solve_rate: stats.gradedSolveRate,
    graded_trials: stats.gradedTrials,
    raw_solve_rate: stats.rawSolveRate,
    executed_trials: stats.executedTrials,
    infra_failed_trials: stats.infraFailedTrials,
    scaffold_loss_rate: stats.scaffoldLossRate,
    stop_reason_counts: stats.stopReasonCounts,
    empty_span_trials: stats.emptySpanTrials,
    truncated_spans: stats.truncatedSpans,
    datums: trained.datums,
    fragments: built.fragments,
    fragmentation_rate: built.fragmentationRate,
    overflow_drops: built.overflowDrops,
    overlong_drops: built.overlongDrops,
    mismatch_drops: trained.mismatchDrops,
    clipped_tokens: trained.clippedTokens,
    optimizer_updates: trained.losses.length,
    loss_tokens: trained.lossTokens,
    context_tokens: trained.contextTokens,
    masked_tokens: built.maskedTokens,
    reverse_kl_per_token: trained.reverseKlNatsPerToken,
    entropy_per_token: health.entropyNatsPerToken,
    mean_generation_tokens: health.sampledTokensPerEpisode,
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
    sampler_path: facts.samplerPath,
    sampler_staleness_steps: facts.samplerStalenessSteps,
    student_prefill_tokens: meters.student_prefill ?? 0,
    student_cached_prefill_tokens: meters.student_cached_prefill ?? 0,
    student_sample_tokens: meters.student_sample ?? 0,
    student_train_tokens: meters.student_train ?? 0,
    teacher_prefill_tokens: meters.teacher_prefill ?? 0,
    teacher_cached_prefill_tokens: meters.teacher_cached_prefill ?? 0,
    teacher_sample_tokens: meters.teacher_sample ?? 0,
    usd,
    cumulative_usd: facts.spentBeforeUsd + usd,
    unpriced_meters: blindTo,
    forecast_usd: facts.forecastUsd,
  };
}

function meanOfTold(losses: readonly (number | null)[]): number | null {
  const told = losses.filter((loss) => loss !== null);
  return told.length === 0 ? null : told.reduce((sum, loss) => sum + loss, 0) / told.length;
}
