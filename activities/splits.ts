import { relative, resolve } from 'node:path';
import type { RunConfig } from '../core/config/index.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import {
  BadHarborInput,
  resolveTasks as findTasks,
  type JobTemplate,
  parseJobTemplate,
  taskContentDigest,
  taskDigest,
} from '../services/harbor/index.ts';
import { InputProblem, read } from './input-files.ts';

/** A pinned task with a digest of what it asks and checks, whatever it is called. */
export type SplitTask = PinnedTask & { readonly contentDigest: string };

/** Reads the job template and pins every task of both splits by its content. */
export async function resolveTasks(projectRoot: string, config: RunConfig, trainIds: readonly string[], holdoutIds: readonly string[]) {
  const path = config.harbor.job_template;
  const text = await read(projectRoot, path, 'harbor.job_template');
  try {
    const jobTemplate: JobTemplate = parseJobTemplate(text, path);
    const pin = async (ids: readonly string[]): Promise<SplitTask[]> => {
      const folders = await findTasks(jobTemplate, projectRoot, ids);
      return Promise.all(
        folders.map(async ({ id, dir }) => ({
          id,
          path: relative(projectRoot, resolve(dir)),
          digest: await taskDigest(dir),
          contentDigest: await taskContentDigest(dir),
        })),
      );
    };
    return { jobTemplate, train: await pin(trainIds), holdout: await pin(holdoutIds) };
  } catch (error) {
    if (error instanceof BadHarborInput) throw new InputProblem('harbor.job_template', error.message);
    throw error;
  }
}

/** A held-out task that is trained on proves nothing. @throws InputProblem naming the first that is in both splits, by id or by content. */
export function refuseOverlap(train: readonly SplitTask[], holdout: readonly SplitTask[]): void {
  const ids = new Set(train.map(({ id }) => id));
  const contents = new Map(train.map(({ contentDigest, id }) => [contentDigest, id]));
  for (const { id, contentDigest } of holdout) {
    if (ids.has(id)) throw new InputProblem('holdoutTaskIds', `task ${id} is in the training split too`);
    const twin = contents.get(contentDigest);
    if (twin !== undefined) throw new InputProblem('holdoutTaskIds', `task ${id} has the same content as training task ${twin}`);
  }
}
