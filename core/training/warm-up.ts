import { seedFromName } from '../random/seeded.ts';
import type { Trajectory } from '../run/warm-up.ts';
import { buildDatums, type DatumLimits, type DatumStats } from '../tokens/datums.ts';
import type { Datum, Episode } from '../tokens/span.ts';
import { drawTasks } from './task-sampler.ts';

/** A trajectory that has tokens. */
export type KeptTrajectory = Trajectory & { readonly spans: NonNullable<Trajectory['spans']> };

/** The trajectories that a warm-up trains on: with `passed` those that solved their task, with `all` every executed one that sampled something. */
export function keptTrajectories(trajectories: readonly Trajectory[], keep: 'passed' | 'all'): KeptTrajectory[] {
  return trajectories.filter(
    (trajectory): trajectory is KeptTrajectory => trajectory.executed && trajectory.spans !== null && (keep === 'all' || trajectory.passed),
  );
}

export type WarmupDatums = { readonly datums: readonly Datum[]; readonly stats: DatumStats; readonly firstTokenDrops: number };

/** The training sequences of one episode. A sequence whose first token was sampled has nothing to predict it from: it is dropped and counted. */
export function warmupDatums(episode: Episode, limits: DatumLimits): WarmupDatums {
  const { datums, stats } = buildDatums([episode], limits);
  const usable = datums.filter(({ mask }) => mask[0] !== 1);
  return { datums: usable, stats, firstTokenDrops: datums.length - usable.length };
}

export type WarmupDraw = {
  /** How many sequences there are to draw from, at least one. */
  readonly datums: number;
  readonly batchSize: number;
  /** From 1. */
  readonly update: number;
  readonly runName: string;
};

/**
 * Indices of the sequences of one update: min(batchSize, datums), none twice. As tasks are drawn: seeded permutations, one an epoch,
 * without a draw lost at an epoch's edge, and a function of the update's number alone.
 */
export function drawWarmupBatch({ datums, batchSize, update, runName }: WarmupDraw): number[] {
  const taskIds = Array.from({ length: datums }, (_, index) => String(index));
  return drawTasks({ taskIds, tasksPerBatch: batchSize, step: update - 1, seed: seedFromName(`${runName}/warmup`) }).map(Number);
}
