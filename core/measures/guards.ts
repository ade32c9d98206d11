import type { RunConfig } from '../config/schema.ts';
import type { GuardState, Health } from '../run/results.ts';
import type { BatchHealth } from './health.ts';

export type Breach = {
  readonly metric: 'entropy' | 'length';
  readonly level: 'warn' | 'kill';
  readonly direction: 'floor' | 'ceiling';
  /** The metric over that of the run's baseline step. */
  readonly ratio: number;
  readonly threshold: number;
  /** The config key that set the threshold. */
  readonly field: string;
};

type Measured = Pick<BatchHealth, 'entropyNatsPerToken' | 'sampledTokensPerEpisode'>;
type Thresholds = RunConfig['tripwire'];

export type TripwireCheck = {
  readonly guard: GuardState;
  readonly entropyRatio: number | null;
  readonly lengthRatio: number | null;
  /** None on the step that sets the baseline, none when the tripwire is off. */
  readonly breaches: readonly Breach[];
  /** True when this is the `kill_consecutive_steps`-th kill in a row (or a later one): the run must stop before these weights are saved. */
  readonly kill: boolean;
};

/**
 * Compares a step with the run's first measurable one. A kill step lengthens the streak, any other measured step ends it, a step that
 * measured nothing leaves it alone.
 */
export function checkTripwire(guard: GuardState, step: number, measured: Measured, thresholds: Thresholds): TripwireCheck {
  const first = guard.baseline === null ? asBaseline(step, measured) : null;
  const baseline = guard.baseline ?? first;
  const entropyRatio = ratio(measured.entropyNatsPerToken, baseline?.entropyNatsPerToken);
  const lengthRatio = ratio(measured.sampledTokensPerEpisode, baseline?.sampledTokensPerEpisode);
  const breaches = baseline && !first && thresholds.enabled ? breachesOf(measured, baseline, thresholds) : [];
  const nothing = entropyRatio === null && lengthRatio === null;
  const killed = breaches.some((breach) => breach.level === 'kill');
  const killStreak = killed ? guard.killStreak + 1 : nothing ? guard.killStreak : 0;
  return {
    guard: { ...guard, baseline, killStreak, killStreakFrom: killStreak === 0 ? null : (guard.killStreakFrom ?? step) },
    entropyRatio,
    lengthRatio,
    breaches,
    kill: killed && killStreak >= thresholds.kill_consecutive_steps,
  };
}

/** The first step whose entropy and length are both measured and above zero is what later ones are compared with. */
export function asBaseline(step: number, measured: Measured): Health | null {
  const { entropyNatsPerToken, sampledTokensPerEpisode } = measured;
  if (!entropyNatsPerToken || !sampledTokensPerEpisode || entropyNatsPerToken <= 0) return null;
  return { step, entropyNatsPerToken, sampledTokensPerEpisode };
}

/** At most one breach per metric: a kill hides the warning below it. */
export function breachesOf(measured: Measured, baseline: Omit<Health, 'step'>, t: Thresholds): Breach[] {
  return [
    breach('entropy', ratio(measured.entropyNatsPerToken, baseline.entropyNatsPerToken), t),
    breach('length', ratio(measured.sampledTokensPerEpisode, baseline.sampledTokensPerEpisode), t),
  ].filter((found) => found !== null);
}

function breach(metric: 'entropy' | 'length', value: number | null, t: Thresholds): Breach | null {
  if (value === null) return null;
  for (const level of ['kill', 'warn'] as const) {
    const floor = t[`${metric}_${level}_frac`];
    if (value <= floor)
      return { metric, level, direction: 'floor', ratio: value, threshold: floor, field: `tripwire.${metric}_${level}_frac` };
    const ceiling = t[`${metric}_${level}_mult`];
    if (value >= ceiling)
      return { metric, level, direction: 'ceiling', ratio: value, threshold: ceiling, field: `tripwire.${metric}_${level}_mult` };
  }
  return null;
}

function ratio(value: number | null, baseline: number | undefined): number | null {
  return value === null || baseline === undefined ? null : value / baseline;
}

/** What guards remember when a run goes on after a kill: it resumes from weights saved before the streak, so the streak is over. */
export function guardsAfterKill(guard: GuardState): GuardState {
  return { ...guard, killStreak: 0, killStreakFrom: null };
}

/** Steps in a row that trained nothing before a run stops. */
export const EMPTY_STEPS_TO_STOP = 2;

/** A step that trained nothing, for whatever reason, counts as empty; the second in a row stops the run. */
export function countEmptyStep(guard: GuardState, trainedDatums: number): { guard: GuardState; stop: boolean } {
  const emptyStreak = trainedDatums === 0 ? guard.emptyStreak + 1 : 0;
  return { guard: { ...guard, emptyStreak }, stop: emptyStreak >= EMPTY_STEPS_TO_STOP };
}
