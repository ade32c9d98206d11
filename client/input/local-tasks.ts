import { resolve } from 'node:path';
import type { RunConfig } from '../../core/config/index.ts';
import { BadHarborInput } from '../../services/harbor/errors.ts';
import { readJobTemplate, resolveTasks } from '../../services/harbor/job-template.ts';
import { type TaskFolder, taskContentDigest } from '../../services/harbor/task-folder.ts';
import { some } from './task-ids.ts';

export type Splits = { readonly train: readonly string[]; readonly holdout: readonly string[] };

/**
 * What is wrong with the job template and the task folders, as this machine sees them: a missing or wrong template, a task that is
 * nowhere or lacks a file, and a held-out task with the content of a training task under another name.
 */
export async function localTaskProblems(projectRoot: string, config: RunConfig, splits: Splits): Promise<string[]> {
  try {
    const template = await readJobTemplate(resolve(projectRoot, config.harbor.job_template));
    const [train, holdout] = await Promise.all([
      resolveTasks(template, projectRoot, splits.train),
      resolveTasks(template, projectRoot, splits.holdout),
    ]);
    return await sameContent(train, holdout);
  } catch (error) {
    if (error instanceof BadHarborInput) return error.message.split('\n');
    throw error;
  }
}

async function sameContent(train: readonly TaskFolder[], holdout: readonly TaskFolder[]): Promise<string[]> {
  const trained = new Map<string, string>();
  for (const task of train) trained.set(await taskContentDigest(task.dir), task.id);
  const pairs: string[] = [];
  for (const task of holdout) {
    const twin = trained.get(await taskContentDigest(task.dir));
    if (twin !== undefined) pairs.push(`${task.id} = ${twin}`);
  }
  return pairs.length === 0 ? [] : [`--tasks and --holdout overlap by content: ${some(pairs)}; held-out tasks must not be trained on`];
}
