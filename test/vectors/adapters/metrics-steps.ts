import type { RunConfig } from '../../../core/config/schema.ts';
import { batchStats } from '../../../core/measures/batch-stats.ts';
import { addVolumes, episodeVolume, isExhausted, rolloutMeters, scoringMeters } from '../../../core/measures/billing.ts';
import { checkTripwire, countEmptyStep } from '../../../core/measures/guards.ts';
import { batchHealth, trialTokens } from '../../../core/measures/health.ts';
import { addMeters } from '../../../core/measures/meters.ts';
import { metricsRow, type TrainedBatch } from '../../../core/measures/metrics-row.ts';
import { type GuardState, NO_GUARD_STATE } from '../../../core/run/results.ts';
import { computeAdvantages } from '../../../core/tokens/advantages.ts';
import { buildDatums } from '../../../core/tokens/datums.ts';
import type { Datum } from '../../../core/tokens/span.ts';
import { keepTeacherRow } from '../../../core/tokens/teacher-row.ts';
import { buildTopkReplicas } from '../../../core/tokens/topk.ts';
import { planMinibatches } from '../../../core/training/minibatches.ts';
import { type Candidates, type RawRow, toEpisode, toTopkRow } from './raw-tokens.ts';
import type { Sections } from './sections.ts';
import { type RawTrial, toTally } from './trials.ts';

type Step = {
  trials: RawTrial[];
  teacher_service: { logprobs: RawRow; topk?: (Candidates | null)[]; cache_hits: number }[];
  train_losses: (number | null)[];
  grad_norms: (number | null)[];
};
export type StepsCase = { config: Sections; tasks_in_batch: number; prior_usd: number; sampler_path: string; steps: Step[] };

/** Takes recorded steps through the functions that the activities call, in their order. */
export function runSteps(input: StepsCase, config: RunConfig) {
  let guard: GuardState = NO_GUARD_STATE;
  let spentUsd = input.prior_usd;
  return input.steps.map((raw, step) => {
    const episodes = raw.trials.map((trial) => toEpisode(trial.trial, trial.stop_reason, trial.calls));
    const limits = { contextBudgetTokens: config.rollout.context_budget_tokens, maxDatumTokens: config.train.max_datum_tokens };
    const { datums, stats: built } = buildDatums(episodes, limits);
    const { trained, trainTokens } = train(raw, datums, config, step);
    const health = batchHealth(episodes.map((episode) => trialTokens(episode.spans)));
    const tripwire = checkTripwire(guard, step, health, config.tripwire);
    const empty = countEmptyStep(tripwire.guard, trained.losses.length === 0 ? 0 : trained.datums);
    guard = empty.guard;
    const requests = raw.teacher_service.map((answer, i) => ({ tokens: datums[i]?.tokens.length ?? 0, cacheHits: answer.cache_hits }));
    const row = metricsRow({
      step,
      tasks: input.tasks_in_batch,
      loss: config.train.loss,
      samplerPath: input.sampler_path,
      samplerStalenessSteps: 0,
      stats: batchStats(raw.trials.map((trial) => toTally(trial, config.sampling.max_tokens))),
      health,
      built,
      trained,
      tripwire,
      meters: addMeters(
        rolloutMeters(addVolumes(episodes.map((episode) => episodeVolume(episode.spans))), 'student'),
        scoringMeters(requests),
        { student_train: trainTokens },
      ),
      pricing: config.pricing,
      spentBeforeUsd: spentUsd,
      forecastUsd: null,
    });
    spentUsd = row.cumulative_usd;
    const { masked_tokens: _m, sampler_staleness_steps: _s, unpriced_meters: _u, forecast_usd: _f, ...theirs } = row;
    const over = isExhausted(spentUsd, config.budget.max_usd);
    return { row: theirs, stop: over ? 'budget' : empty.stop ? 'empty_batches' : tripwire.kill ? 'degeneration' : null };
  });
}

/** More losses may be recorded than updates happen. */
function train(raw: Step, datums: readonly Datum[], config: RunConfig, step: number): { trained: TrainedBatch; trainTokens: number } {
  const rows = datums.map((datum, i) => keepTeacherRow(datum, raw.teacher_service[i]?.logprobs ?? []));
  const options = { advantageClip: config.train.advantage_clip, centerAdvantages: config.train.center_advantages };
  const { kept, stats, reverseKlNatsPerToken } = computeAdvantages(datums, rows, options);
  const plan = (sources: number[]) => planMinibatches({ sources, numSubsteps: config.train.num_substeps, runName: 'run', step }).length;
  const common = (updates: number) => ({
    reverseKlNatsPerToken,
    losses: raw.train_losses.slice(0, updates),
    gradNorms: raw.grad_norms.slice(0, updates),
  });
  if (config.train.loss !== 'topk_ce') {
    const tokens = kept.reduce((sum, datum) => sum + datum.tokens.length, 0);
    return { trained: { ...stats, ...common(plan(kept.map((_, i) => i))) }, trainTokens: tokens };
  }
  const topkRows = raw.teacher_service.map((answer) => toTopkRow(answer.topk ?? []));
  const { replicas, stats: topk } = buildTopkReplicas(datums, topkRows, config.train.topk);
  const tokens = replicas.reduce((sum, replica) => sum + replica.datum.tokens.length, 0);
  const none = { clippedTokens: 0, advantageMean: null, advantageStd: null };
  return { trained: { ...topk, ...none, ...common(plan(replicas.map((replica) => replica.source))) }, trainTokens: tokens };
}
