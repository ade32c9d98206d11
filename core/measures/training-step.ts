import type { RunConfig } from '../config/schema.ts';
import type { GuardState, StepResult, TrainResult } from '../run/results.ts';
import type { EpisodeScore, TrialSummary } from '../run/trial.ts';
import { type Breach, checkTripwire, countEmptyStep } from './guards.ts';
import { batchHealth } from './health.ts';
import { addMeters } from './meters.ts';
import { solveRate } from './rates.ts';
import { spendOf } from './spend.ts';

export type FinishedStep = {
  readonly step: number;
  readonly sampler: string;
  readonly guard: GuardState;
  readonly trials: readonly { readonly trial: TrialSummary; readonly score: EpisodeScore | null }[];
  readonly train: TrainResult;
  readonly wallMs: number;
  readonly config: RunConfig;
};

/** The row of a training step and what the guards decide from it. */
export function closeTrainingStep({ step, sampler, guard, trials, train, wallMs, config }: FinishedStep): StepResult {
  const all = trials.map(({ trial }) => trial);
  const executed = all.filter((trial) => trial.executed);
  const passed = executed.filter((trial) => trial.passed).length;
  const health = batchHealth(executed);
  const tripwire = checkTripwire(guard, step, health, config.tripwire);
  const empty = countEmptyStep(tripwire.guard, train.updates === 0 ? 0 : train.datums);
  const meters = addMeters(
    train.meters,
    ...all.map((trial) => trial.meters),
    ...trials.flatMap(({ score }) => (score ? [score.meters] : [])),
  );
  return {
    row: {
      step,
      sampler,
      trials: all.length,
      executedTrials: executed.length,
      passedTrials: passed,
      infraFailedTrials: all.length - executed.length,
      solveRate: solveRate(passed, executed.length),
      reverseKlNatsPerToken: train.reverseKlNatsPerToken,
      entropyNatsPerToken: health.entropyNatsPerToken,
      sampledTokensPerEpisode: health.sampledTokensPerEpisode,
      datums: train.datums,
      fragments: trials.reduce((sum, { score }) => sum + (score?.fragments ?? 0), 0),
      lossTokens: train.lossTokens,
      updates: train.updates,
      loss: train.loss,
      gradNorm: train.gradNorm,
      advantageMean: train.advantageMean,
      advantageStd: train.advantageStd,
      clippedTokens: train.clippedTokens,
      maskedTokens: all.reduce((sum, trial) => sum + trial.maskedTokens, 0),
      overflowTrials: all.filter((trial) => trial.overflow).length,
      entropyRatio: tripwire.entropyRatio,
      lengthRatio: tripwire.lengthRatio,
      warnings: tripwire.breaches.map(told),
      meters,
      usd: spendOf(config.pricing, meters).usd,
      wallMs,
      trainMs: train.wallMs,
    },
    nextSeqId: train.nextSeqId,
    guard: empty.guard,
    kill: tripwire.kill
      ? tripwire.breaches
          .filter(({ level }) => level === 'kill')
          .map(told)
          .join('; ')
      : null,
    starved: empty.stop,
  };
}

const told = ({ metric, ratio, direction, threshold, field }: Breach) =>
  `${metric} is at ${ratio.toFixed(2)} of its first value, ${direction === 'floor' ? 'at or below' : 'at or above'} ${threshold} (${field})`;
