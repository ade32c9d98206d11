import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RunConfig } from '../../core/config/index.ts';
import { BaselineError, baselineWanted, chooseBaseline } from '../../core/gate/baselines.ts';
import { isBelow } from './below.ts';
import type { Problems } from './problems.ts';

/** Tells which of the baselines that a config imports cannot be used, as this machine sees their files. */
export async function checkLocalBaselines(
  projectRoot: string,
  config: RunConfig,
  holdout: readonly string[],
  problems: Problems,
): Promise<void> {
  for (const which of ['teacher', 'student'] as const) {
    const key = `${which}_baseline_from` as const;
    const path = config.eval[key];
    const problem =
      path === null
        ? null
        : await problemOf(projectRoot, path, (importText) => chooseBaseline({ ...baselineWanted(config, which, holdout), importText }));
    if (problem !== null) problems.add('baseline', `eval.${key} ${path}: ${problem}`);
  }
}

async function problemOf(projectRoot: string, path: string, choose: (text: string | null) => unknown): Promise<string | null> {
  if (!isBelow(projectRoot, path)) return 'must be below the project root, where workers read';
  try {
    choose(await textOf(resolve(projectRoot, path)));
    return null;
  } catch (error) {
    if (error instanceof BaselineError) return error.message;
    return `cannot be read: ${(error as Error).message}`;
  }
}

async function textOf(path: string): Promise<string | null> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => (error.code === 'ENOENT' ? null : Promise.reject(error)));
}
