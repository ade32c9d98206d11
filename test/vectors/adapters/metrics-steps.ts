import type { RunConfig } from '../../../core/config/schema.ts';
import { isExhausted, scoringMeters } from '../../../core/measures/billing.ts';
import { type ClosedScore, type ClosedTrial, closeTrainingStep } from '../../../core/measures/training-step.ts';
import { trialFigures } from '../../../core/measures/trial-figures.ts';
import { NO_USAGE } from '../../../core/measures/usage.ts';
import { type GuardState, NO_GUARD_STATE, type StepResult, type TrainResult } from '../../../core/run/results.ts';
import { trainingOf } from '../../../core/run/testing/facts.ts';
import { buildDatums } from '../../../core/tokens/datums.ts';
import type { Datum } from '../../../core/tokens/span.ts';
import { keepTeacherRow } from '../../../core/tokens/teacher-row.ts';
import { prepareBatch } from '../../../core/training/batch.ts';
import { type Candidates, type RawRow, toEpisode, toTopkRow } from './raw-tokens.ts';
import type { Sections } from './sections.ts';
import { type RawTrial, toTally } from './trials.ts';

type Answer = { logprobs: RawRow; topk?: (Candidates | null)[]; cache_hits: number };
type Step = {
  trials: RawTrial[];
  /** One per datum that was built. */
  teacher_service: Answer[];
  train_losses: (number | null)[];
  grad_norms: (number | null)[];
};
export type StepsCase = { config: Sections; tasks_in_batch: number; prior_usd: number; sampler_path: string; steps: Step[] };

/** Takes recorded steps through the functions that the activities call, in their order. */
export function runSteps(input: StepsCase, config: RunConfig) {
  let guard: GuardState = NO_GUARD_STATE;
  let spentUsd = input.prior_usd;
  return input.steps.map((raw, step) => {
    const answers = [...raw.teacher_service];
    const scored = raw.trials.map((trial) => scoreTrial(trial, answers, config));
    const result = closeTrainingStep({
      step,
      tasks: input.tasks_in_batch,
      sampler: { version: 'step-0000', path: input.sampler_path, stalenessSteps: 0 },
      guard,
      money: { spentUsd, stepUsd: [], stepsAhead: 0, evaluationsAheadUsd: 0 },
      trials: raw.trials.map((trial, i) => ({ trial: closedTrial(trial, config), score: scored[i]?.score ?? null })),
      train: train(raw, scored, config, step),
      wallMs: 0,
      config,
    });
    guard = result.guard;
    spentUsd = result.row.cumulative_usd;
    return { row: result.row, stop: stopOf(result, config.budget.max_usd) };
  });
}

function stopOf({ row, starved, kill }: StepResult, maxUsd: number | null) {
  if (isExhausted(row.cumulative_usd, maxUsd)) return 'budget';
  return starved ? 'empty_batches' : kill ? 'degeneration' : null;
}

function closedTrial(raw: RawTrial, config: RunConfig): ClosedTrial {
  const { spans } = toEpisode(raw.trial, raw.stop_reason, raw.calls);
  const maxTokens = config.sampling.max_tokens;
  const undisturbed = { lost: [], replayedTokens: 0, reboughtTokens: 0 };
  const plain = { fragmentCauses: {}, unreadableCalls: 0, lookAlikes: 0 };
  const figures = trialFigures(spans, { maxTokens, who: 'student' });
  return { ...toTally(raw, maxTokens), ...figures, ...undisturbed, usd: 0, maskedTokens: 0, overflow: false, ...plain };
}

type ScoredTrial = { readonly datums: readonly Datum[]; readonly answers: readonly Answer[]; readonly score: ClosedScore };

/** Takes its datums' answers off the front of `answers`. */
function scoreTrial(trial: RawTrial, answers: Answer[], config: RunConfig): ScoredTrial {
  const limits = { contextBudgetTokens: config.rollout.context_budget_tokens, maxDatumTokens: config.train.max_datum_tokens };
  const { datums, stats } = buildDatums([toEpisode(trial.trial, trial.stop_reason, trial.calls)], limits);
  const own = answers.splice(0, datums.length);
  const requests = datums.map(({ tokens }, i) => ({ tokens: tokens.length, cacheHits: own[i]?.cache_hits ?? null }));
  const { fragments, overflowDrops, overlongDrops } = stats;
  const dropped = { overflowDropped: overflowDrops > 0, overlongDropped: overlongDrops > 0 };
  const paid = { ...NO_USAGE, meters: scoringMeters(requests), usd: 0, trainUsd: 0 };
  return { datums, answers: own, score: { datums: datums.length, fragments, ...dropped, ...paid } };
}

/** More losses may be recorded than updates happen. */
function train(raw: Step, scored: readonly ScoredTrial[], config: RunConfig, step: number): TrainResult {
  const datums = scored.flatMap((trial) => trial.datums);
  const answers = scored.flatMap((trial) => trial.answers);
  const batch = {
    datums,
    rows: datums.map((datum, i) => keepTeacherRow(datum, answers[i]?.logprobs ?? [])),
    candidates: answers.map((answer) => toTopkRow(answer.topk ?? [])),
  };
  const { updates, figures, trainTokens } = prepareBatch(batch, { train: config.train, runName: 'run', step });
  const losses = raw.train_losses.slice(0, updates.length);
  const gradNorms = raw.grad_norms.slice(0, updates.length);
  return {
    training: trainingOf(),
    notices: [],
    trained: { ...figures, losses, gradNorms },
    ...NO_USAGE,
    meters: { student_train: trainTokens },
    wallMs: 0,
  };
}
