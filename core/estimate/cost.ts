import type { RunConfig } from '../config/schema.ts';
import { rolloutMeters } from '../measures/billing.ts';
import { addMeters, type Meter, type MeterTokens } from '../measures/meters.ts';
import { FULL_METERS, pricedUsd, type SpendLine, spendLines, spendOf, unpricedIn } from '../measures/spend.ts';
import type { TrialKind } from '../money/reservations.ts';
import { trainingPasses } from '../money/trial-limit.ts';

export type SplitSizes = { readonly nTrain: number; readonly nHoldout: number };

export type CostEstimate = {
  readonly lines: readonly SpendLine[];
  /** Sum over the priced meters; what unpriced ones cost is unknown. */
  readonly pricedUsd: number;
  readonly unpricedMeters: readonly Meter[];
  readonly fullyPriced: boolean;
  /** The five full prices are set; the cached ones follow from them. */
  readonly pricingIsComplete: boolean;
  readonly trainEpisodes: number;
  /** Interim evaluations. */
  readonly evalEpisodes: number;
  /** Held-out episodes of the gate: teacher, student before, student after. */
  readonly baselineEpisodes: number;
  readonly warmupEpisodes: number;
};

/** Split sizes that no run can have. */
export class EstimateError extends Error {
  readonly code = 'bad_split_size';

  constructor({ nTrain, nHoldout }: SplitSizes) {
    super(`a run needs at least one training task and no negative holdout; got ${nTrain} and ${nHoldout}`);
    this.name = 'EstimateError';
  }
}

/** What an episode is taken to look like before anything is measured, in tokens. Agents use about half of the turns they may. */
const SYSTEM_TOKENS = 2048;
const OBSERVATION_TOKENS = 1024;
const ANSWER_TOKENS = 512;
const TURNS_USED = 0.5;

/**
 * Tokens and cost of a whole run, before it starts. Baselines that are imported and a warm-up that is loaded cost nothing here, and
 * `train.rollout_max_turns` shortens training episodes.
 * @throws EstimateError when there is no training task or a negative holdout.
 */
export function estimateCost(config: RunConfig, sizes: SplitSizes): CostEstimate {
  const { nTrain, nHoldout } = sizes;
  if (!(nTrain >= 1 && nHoldout >= 0)) throw new EstimateError(sizes);
  const { train, rollout, pricing } = config;
  const trainEpisodes = train.steps * Math.min(train.tasks_per_batch, nTrain) * train.group_size;
  const evals = config.eval.every === 0 ? 0 : Math.floor(train.steps / config.eval.every);
  const evalEpisodes = evals * Math.min(config.eval.tasks, nTrain) * config.eval.k;
  const perEvaluation = nHoldout * config.gate.k;
  const teacherBaseline = config.eval.teacher_baseline_from === null ? perEvaluation : 0;
  const studentBaselines = perEvaluation + (config.eval.student_baseline_from === null ? perEvaluation : 0);
  const collects = config.warmup.steps > 0 && config.warmup.trajectories_from === null;
  const warmupEpisodes = collects ? nTrain * config.warmup.rollouts_per_task : 0;

  const training = episodeOf(config, train.rollout_max_turns ?? rollout.max_turns);
  const evaluating = episodeOf(config, rollout.max_turns);
  const studentEvals = evalEpisodes + studentBaselines;
  const teacherRuns = teacherBaseline + warmupEpisodes;
  const tokens: MeterTokens = {
    student_prefill: trainEpisodes * training.unique + studentEvals * evaluating.unique,
    student_cached_prefill: trainEpisodes * training.cached + studentEvals * evaluating.cached,
    student_sample: trainEpisodes * training.sampled + studentEvals * evaluating.sampled,
    student_train: trainEpisodes * training.unique * trainingPasses(train),
    teacher_prefill: trainEpisodes * training.unique + teacherRuns * evaluating.unique,
    teacher_cached_prefill: teacherRuns * evaluating.cached,
    teacher_sample: teacherRuns * evaluating.sampled,
  };
  const lines = spendLines(tokens, pricing);
  const unpricedMeters = unpricedIn(lines);
  return {
    lines,
    pricedUsd: pricedUsd(lines),
    unpricedMeters,
    fullyPriced: unpricedMeters.length === 0,
    pricingIsComplete: FULL_METERS.every((meter) => pricing[meter] !== null),
    trainEpisodes,
    evalEpisodes,
    baselineEpisodes: teacherBaseline + studentBaselines,
    warmupEpisodes,
  };
}

/** What one episode of each kind costs by these assumptions, in USD, as far as there are prices: its scores and its training with it. */
export function estimateTrialUsd(config: RunConfig): Readonly<Record<TrialKind, number>> {
  const { train, rollout, pricing } = config;
  const training = episodeOf(config, train.rollout_max_turns ?? rollout.max_turns);
  const evaluating = episodeOf(config, rollout.max_turns);
  const follows = { student_train: training.unique * trainingPasses(train), teacher_prefill: training.unique };
  const usd = (meters: MeterTokens) => spendOf(pricing, meters).usd;
  return {
    training: usd(addMeters(sampling('student', training), follows)),
    student: usd(sampling('student', evaluating)),
    teacher: usd(sampling('teacher', evaluating)),
  };
}

type EpisodeTokens = { readonly unique: number; readonly cached: number; readonly sampled: number };

const sampling = (who: 'student' | 'teacher', { unique, cached, sampled }: EpisodeTokens): MeterTokens =>
  rolloutMeters({ uniqueTokens: unique, cachedTokens: cached, sampledTokens: sampled }, who);

/** Billed tokens of one episode that keeps its history: every prompt repeats all before it, up to the context budget. */
function episodeOf(config: RunConfig, maxTurns: number): EpisodeTokens {
  const budget = config.rollout.context_budget_tokens;
  const answer = Math.min(ANSWER_TOKENS, config.sampling.max_tokens);
  const turns = Math.ceil(maxTurns * TURNS_USED);
  const unique = Math.min(budget, SYSTEM_TOKENS + turns * (answer + OBSERVATION_TOKENS));
  const [first, growth] = [SYSTEM_TOKENS + OBSERVATION_TOKENS, answer + OBSERVATION_TOKENS];
  // Prompts grow by the same amount each turn until they fill the budget: an arithmetic series, then a constant.
  const growing = Math.min(turns, Math.max(0, Math.ceil((budget - first) / growth)));
  const prompts = growing * first + (growth * growing * (growing - 1)) / 2 + (turns - growing) * budget;
  return { unique, cached: Math.max(0, prompts - unique), sampled: Math.min(unique, turns * answer) };
}
