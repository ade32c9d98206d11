import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { RunConfig } from '../../core/config/index.ts';
import { baselineSource, importBaseline } from '../../core/gate/baselines.ts';
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
    const source = baselineSource(config, which);
    if (source === null) continue;
    const { field, path } = source;
    const problem = await problemOf(projectRoot, path, (text) => importBaseline(config, which, holdout, text).problem);
    if (problem !== null) problems.add('baseline', `${field}: ${path}: ${problem}`);
  }
}

async function problemOf(projectRoot: string, path: string, judge: (text: string | null) => string | null): Promise<string | null> {
  if (!isBelow(projectRoot, path)) return 'must be below the project root, where workers read';
  const file = resolve(projectRoot, path);
  try {
    return judge(await readFile(file, 'utf8'));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return judge(null);
    if (code === 'EISDIR') return 'is a folder; name the baseline-teacher.json or baseline-student.json in it';
    return `cannot be read: ${(error as Error).message}`;
  }
}
