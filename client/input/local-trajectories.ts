import { readFile, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { RunConfig } from '../../core/config/index.ts';
import { parseTrajectories, TRAJECTORY_FILE } from '../../core/run/trajectory-file.ts';
import { isBelow } from './below.ts';
import type { Problems } from './problems.ts';

/** Tells whether the trajectories that a config names can be read, as this machine sees them. A worker checks them whole when the run resolves. */
export async function checkLocalTrajectories(projectRoot: string, config: RunConfig, problems: Problems): Promise<void> {
  const { steps, trajectories_from: from } = config.warmup;
  if (steps === 0 || from === null) return;
  const problem = isBelow(projectRoot, from)
    ? await problemOf(resolve(projectRoot, from))
    : 'must be below the project root, where workers read';
  if (problem !== null) problems.add('trajectories', `warmup.trajectories_from: ${from}: ${problem}`);
}

async function problemOf(path: string): Promise<string | null> {
  try {
    const isFolder = (await stat(path)).isDirectory();
    return parseTrajectories(await readFile(isFolder ? join(path, TRAJECTORY_FILE) : path, 'utf8')).problem;
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    return isMissing
      ? `there is no such run folder or file, or it has no ${TRAJECTORY_FILE}`
      : `cannot be read: ${(error as Error).message}`;
  }
}
