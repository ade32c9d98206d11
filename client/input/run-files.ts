import { parseRunConfig, type RunConfig, withBackend } from '../../core/config/index.ts';
import { readInputFile } from './files.ts';
import type { Problems } from './problems.ts';
import { overlapProblems, readTaskIds } from './task-ids.ts';

/** The files that a run's size and cost follow from, as typed. */
export type RunFiles = {
  readonly config: string;
  readonly tasks: string;
  readonly holdout: string;
  readonly backend?: RunConfig['harbor']['backend'];
};

/** A config file's text, and the config in it with the backend that was asked for; null where there is none. */
export type ConfigFile = { readonly text: string | null; readonly config: RunConfig | null };

/** Reads the run config; `problems` is told what is wrong, each by file and field. */
export async function readConfigFile({ config: path, backend }: RunFiles, problems: Problems): Promise<ConfigFile> {
  const file = await readInputFile(path, '--config');
  if ('problem' in file) {
    problems.add('config_unreadable', file.problem);
    return { text: null, config: null };
  }
  const parsed = parseRunConfig(file.text, path);
  if (parsed.ok) return { text: file.text, config: withBackend(parsed.config, backend) };
  problems.add('config_invalid', ...parsed.errors.map(({ message }) => message));
  return { text: file.text, config: null };
}

/** The ids of both splits; null for one that cannot be used. */
export type SplitIds = { readonly train: readonly string[] | null; readonly holdout: readonly string[] | null };

/** Reads both splits by id; `problems` is told of unreadable ones, of duplicates and of what is in both. */
export async function readSplits({ tasks, holdout: held }: RunFiles, problems: Problems): Promise<SplitIds> {
  const train = await readTaskIds(tasks, '--tasks', problems);
  const holdout = await readTaskIds(held, '--holdout', problems);
  if (train && holdout) problems.add('overlap', ...overlapProblems(train, holdout));
  return { train, holdout };
}
