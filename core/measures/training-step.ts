import type { RunConfig } from '../config/schema.ts';
import { usualMostUsd } from '../money/reservations.ts';
import type { GuardState, MoneySoFar, StepResult, TrainResult } from '../run/results.ts';
import type { EpisodeScore, TrialSummary } from '../run/trial.ts';
import { batchStats } from './batch-stats.ts';
import { type Breach, checkTripwire, countEmptyStep } from './guards.ts';
import { batchHealth } from './health.ts';
import { type BuiltDatums, metricsRow } from './metrics-row.ts';
import { addUsage, lostCalls, type Paid } from './usage.ts';

/** What the row needs of a trial; its tokens are not among it. */
export type ClosedTrial = Pick<
  TrialSummary,
  | 'reward'
  | 'passed'
  | 'executed'
  | 'stopReason'
  | 'gradedScore'
  | 'calls'
  | 'truncatedCalls'
  | 'sampledTokens'
  | 'negLogprobNats'
  | 'scoredTokens'
  | 'maskedTokens'
  | 'overflow'
  | 'fragmentCauses'
  | 'unreadableCalls'
  | 'lookAlikes'
  | 'replayedTokens'
  | 'reboughtTokens'
> &
  Paid;
export type ClosedScore = Pick<EpisodeScore, 'datums' | 'fragments' | 'overflowDropped' | 'overlongDropped' | 'trainUsd'> & Paid;

export type FinishedStep = {
  readonly step: number;
  /** Tasks of the batch. */
  readonly tasks: number;
  readonly sampler: { readonly version: string; readonly path: string; readonly stalenessSteps: number };
  readonly guard: GuardState;
  readonly money: MoneySoFar;
  readonly trials: readonly { readonly trial: ClosedTrial; readonly score: ClosedScore | null }[];
  readonly train: TrainResult;
  readonly wallMs: number;
  readonly config: RunConfig;
};

/** The row of a training step and what the guards decide from it. Trials come in the order of their slots, so that the row is the same to the last bit however they ended. */
export function closeTrainingStep({ step, tasks, sampler, guard, money, trials, train, wallMs, config }: FinishedStep): StepResult {
  const all = trials.map(({ trial }) => trial);
  const scores = trials.flatMap(({ score }) => (score ? [score] : []));
  const health = batchHealth(all);
  const tripwire = checkTripwire(guard, step, health, config.tripwire);
  const empty = countEmptyStep(tripwire.guard, train.trained.losses.length === 0 ? 0 : train.trained.datums);
  const usage = addUsage(train, ...all, ...scores);
  const row = metricsRow({
    step,
    tasks,
    loss: config.train.loss,
    sampler: sampler.version,
    samplerPath: sampler.path,
    samplerStalenessSteps: sampler.stalenessSteps,
    stats: batchStats(all),
    health,
    built: builtFrom(scores, all),
    overflowTrials: all.filter((trial) => trial.overflow).length,
    fragmentCauses: addCounts(all.map((trial) => trial.fragmentCauses)),
    unreadableCalls: sum(all.map((trial) => trial.unreadableCalls)),
    lookAlikes: sum(all.map((trial) => trial.lookAlikes)),
    trained: train.trained,
    tripwire,
    warnings: [...train.notices, ...tripwire.breaches.map((breach) => told(breach))],
    meters: usage.meters,
    replayedTokens: sum(all.map((trial) => trial.replayedTokens)),
    reboughtTokens: sum(all.map((trial) => trial.reboughtTokens)),
    lostCalls: lostCalls(usage),
    pricing: config.pricing,
    money,
    wallMs,
    trainMs: train.wallMs,
  });
  return {
    row,
    ...usage,
    trialUsd: usualMostUsd(trials.map(({ trial, score }) => trial.usd + (score ? score.usd + score.trainUsd : 0))),
    training: train.training,
    guard: empty.guard,
    kill: tripwire.kill ? told(...tripwire.breaches.filter(({ level }) => level === 'kill')) : null,
    starved: empty.stop,
  };
}

function builtFrom(scores: readonly ClosedScore[], trials: readonly ClosedTrial[]): BuiltDatums {
  return {
    datums: sum(scores.map((score) => score.datums)),
    fragments: sum(scores.map((score) => score.fragments)),
    overflowDrops: scores.filter((score) => score.overflowDropped).length,
    overlongDrops: scores.filter((score) => score.overlongDropped).length,
    maskedTokens: sum(trials.map((trial) => trial.maskedTokens)),
  };
}

/** Counts of the same name added, in the order of names. */
function addCounts(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const names = [...new Set(all.flatMap((counts) => Object.keys(counts)))].sort();
  return Object.fromEntries(names.map((name) => [name, sum(all.map((counts) => counts[name] ?? 0))]));
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

const told = (...breaches: readonly Breach[]) =>
  breaches
    .map(
      ({ metric, ratio, direction, threshold, field }) =>
        `${metric} is at ${ratio.toFixed(2)} of its first value, ${direction === 'floor' ? 'at or below' : 'at or above'} ${threshold} (${field})`,
    )
    .join('; ');
