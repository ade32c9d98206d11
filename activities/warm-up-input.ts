import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunConfig } from '../core/config/index.ts';
import {
  parseTrajectories,
  type TeacherIdentity,
  TRAJECTORY_FILE,
  type TrajectoryDocument,
  trajectoriesIn,
  trajectoryProblem,
} from '../core/run/trajectory-file.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import { TokenError } from '../core/tokens/token-error.ts';
import { BlobCorrupt, BlobMissing, type BlobStore } from '../services/blobs/blob-store.ts';
import { sha256 } from './digest.ts';
import { read } from './input-files.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';
import { reallyBelow } from './run-folder.ts';
import { buildWarmupSet, NothingToWarmUpOn } from './warm-up-set.ts';

const FIELD = 'warmup.trajectories_from';

export type Splits = { readonly train: readonly PinnedTask[]; readonly holdout: readonly PinnedTask[] };
export type LoadedTrajectories = { readonly document: TrajectoryDocument; readonly fileHash: string };

/**
 * The trajectories that a run's config names, checked whole: their file, their teacher and tasks, their blobs, and that they leave
 * something to train on. Null where the run has no warm-up or samples for it. @throws InputProblem
 */
export async function loadTrajectories(
  projectRoot: string,
  config: RunConfig,
  splits: Splits,
  blobs: BlobStore,
): Promise<LoadedTrajectories | null> {
  const { steps, trajectories_from: from } = config.warmup;
  if (steps === 0 || from === null) return null;
  const text = await read(projectRoot, await fileNamed(projectRoot, from), FIELD);
  const { document, problem } = parseTrajectories(text);
  const refused = problem ?? trajectoryProblem(document, { teacher: teacherIdentity(config), ...splits });
  if (refused !== null || document === null) throw new InputProblem(FIELD, `${from}: ${refused}`);
  try {
    await buildWarmupSet(trajectoriesIn(document), config, blobs);
  } catch (error) {
    const isInput = [NothingToWarmUpOn, TokenError, BlobMissing, BlobCorrupt].some((kind) => error instanceof kind);
    throw isInput ? new InputProblem(FIELD, `${from}: ${(error as Error).message}`) : error;
  }
  return { document, fileHash: sha256(text) };
}

/** What makes a teacher's trajectories another teacher's. */
export function teacherIdentity({ teacher, rollout }: RunConfig): TeacherIdentity {
  return { model: teacher.model, checkpoint: teacher.checkpoint, renderer: rollout.renderers[teacher.model] ?? null };
}

/** A run's folder stands for the file in it. */
async function fileNamed(projectRoot: string, from: string): Promise<string> {
  try {
    const found = await stat(await reallyBelow(projectRoot, from, FIELD));
    return found.isDirectory() ? join(from, TRAJECTORY_FILE) : from;
  } catch (error) {
    throw asInputProblem(error, FIELD, `run folder or file ${from}`);
  }
}
