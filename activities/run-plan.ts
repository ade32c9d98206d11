import type { RunConfig } from '../core/config/index.ts';
import { estimateTrialUsd } from '../core/estimate/cost.ts';
import { canConvince } from '../core/gate/evidence.ts';
import { mostTokens, tokenPrices } from '../core/money/trial-limit.ts';
import { MOST_TRIALS_OPEN } from '../core/run/batch-sizes.ts';
import { studentOf, teacherOf } from '../core/run/models.ts';
import type { PinnedAgent, RunPlan } from '../core/run/pinned-run.ts';
import { usualSameCauseFailures } from '../core/run/same-cause.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import { saveLife } from '../core/training/checkpoint-lives.ts';
import { type JobTemplate, sandboxMode } from '../services/harbor/index.ts';
import { sha256 } from './digest.ts';

/** What the workflow itself needs of the config, compiled once. */
export function planOf(config: RunConfig, { rollouts, training }: RunPlan['queues']): RunPlan {
  const { train, rollout, warmup } = config;
  return {
    student: studentOf(config.student),
    teacher: teacherOf(config.teacher),
    steps: train.steps,
    tasksPerBatch: train.tasks_per_batch,
    groupSize: train.group_size,
    trialConcurrency: train.trial_concurrency,
    samplerRefreshEvery: train.sampler_refresh_every,
    saveStateEvery: train.save_state_every,
    infraRetries: config.harbor.retries,
    sameCauseFailures: config.harbor.same_cause_failures ?? usualSameCauseFailures(Math.min(train.trial_concurrency, MOST_TRIALS_OPEN)),
    maxTurns: rollout.max_turns,
    rolloutMaxTurns: train.rollout_max_turns ?? rollout.max_turns,
    episodeTimeoutMs: rollout.episode_timeout_s * 1000,
    gateK: config.gate.k,
    interim: { every: config.eval.every, tasks: config.eval.tasks, k: config.eval.k },
    deferBaselines: config.eval.defer_baselines,
    warmup: { steps: warmup.steps, rolloutsPerTask: warmup.rollouts_per_task, loaded: warmup.trajectories_from !== null },
    maxUsd: config.budget.max_usd,
    reserves: { limitUsd: config.budget.max_usd_per_trial, estimatedUsd: estimateTrialUsd(config) },
    checkpoints: { ttlSeconds: saveLife(config).ttlSeconds ?? null, keepLast: config.checkpoints.keep_last },
    queues: { rollouts, training },
  };
}

/** Two evaluations with the same hash may be compared: same tasks, budgets, sampling, agent and attempts. */
export function protocolOf(config: RunConfig, agent: PinnedAgent, holdout: readonly PinnedTask[]): string {
  const { max_turns, episode_timeout_s, context_budget_tokens, compaction } = config.rollout;
  return sha256(
    JSON.stringify({
      tasks: holdout.map(({ digest }) => digest).toSorted(),
      rollout: { max_turns, episode_timeout_s, context_budget_tokens, compaction },
      sampling: config.sampling,
      agent: agent.hash,
      attempts: config.gate.k,
      reward: config.harbor.reward_key,
    }),
  );
}

/** What is allowed but worth knowing before it costs something. */
export function warningsFor(config: RunConfig, template: JobTemplate, holdoutTasks: number): string[] {
  const { gate, train } = config;
  const { temperature } = config.sampling;
  return [
    ...smallTrialLimit(config),
    ...(gate.confidence !== null && !canConvince(holdoutTasks, gate.confidence)
      ? [
          `gate.confidence is ${gate.confidence}: ${holdoutTasks} held-out tasks can never show a gain with that confidence, so no result will be promoted; hold out more tasks`,
        ]
      : []),
    ...(train.trial_concurrency > MOST_TRIALS_OPEN
      ? [`train.trial_concurrency is ${train.trial_concurrency}: at most ${MOST_TRIALS_OPEN} trials of a run are open at once`]
      : []),
    ...(temperature === 1
      ? []
      : [
          `sampling.temperature is ${temperature}: solve rates and log-probabilities cannot be compared with those of runs at temperature 1`,
        ]),
    ...(sandboxMode(template) === 'plain'
      ? [
          "the job template's sandboxes are plain, without isolation: what the model writes runs as the worker's user, and can reach its files and local services, Stillroom's own included",
        ]
      : []),
  ];
}

/** A trial whose limit cannot pay for one call is graded as it stands when it is cut, which is easily taken for a model that fails. */
function smallTrialLimit({ budget, pricing, sampling: { max_tokens: wanted }, train }: RunConfig): string[] {
  const limitUsd = budget.max_usd_per_trial;
  if (limitUsd === null) return [];
  const firstCall = { spans: [], inFlight: [], wasted: { promptTokens: 0, sampledTokens: 0 }, prompt: new Int32Array(1) };
  const tokens = Math.max(0, mostTokens(limitUsd, tokenPrices(pricing, 'student', train), firstCall));
  if (tokens >= wanted) return [];
  return [
    `budget.max_usd_per_trial is ${limitUsd}: the student can be paid for at most ${tokens} sampled tokens in a trial of training, less than one call may sample (sampling.max_tokens ${wanted}); such trials are cut and graded as they stand`,
  ];
}
