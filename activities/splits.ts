import { relative, resolve } from 'node:path';
import pLimit from 'p-limit';
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
import { read } from './input-files.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';

/** A pinned task with a digest of what it asks and checks, whatever it is called. */
export type SplitTask = PinnedTask & { readonly contentDigest: string };

/** Ids of both splits, by the names that a run's input has for them. */
export type SplitIds = { readonly taskIds: readonly string[]; readonly holdoutTaskIds: readonly string[] };

export type ResolvedTasks = {
  readonly jobTemplate: JobTemplate;
  readonly templateText: string;
  readonly train: readonly SplitTask[];
  readonly holdout: readonly SplitTask[];
};

/** Task folders read at once; more would only open more files. */
const READERS = 16;

/** Reads the job template and pins every task of both splits by its content. @throws InputProblem */
export async function resolveTasks(projectRoot: string, config: RunConfig, ids: SplitIds): Promise<ResolvedTasks> {
  const path = config.harbor.job_template;
  const templateText = await read(projectRoot, path, 'harbor.job_template');
  const jobTemplate = await problemsOf('harbor.job_template', async () => {
    const template = parseJobTemplate(templateText, path);
    await findTasks(template, projectRoot, []); // a dataset that is not there is the template's mistake, not a split's
    return template;
  });
  const pin = (split: keyof SplitIds) => problemsOf(split, () => pinTasks(projectRoot, jobTemplate, ids[split]));
  return { jobTemplate, templateText, train: await pin('taskIds'), holdout: await pin('holdoutTaskIds') };
}

async function pinTasks(projectRoot: string, template: JobTemplate, ids: readonly string[]): Promise<SplitTask[]> {
  const folders = await findTasks(template, projectRoot, ids);
  return pLimit(READERS).map(folders, async ({ id, dir }) => {
    try {
      const [digest, contentDigest] = [await taskDigest(dir), await taskContentDigest(dir)];
      return { id, path: relative(projectRoot, resolve(dir)), digest, contentDigest };
    } catch (error) {
      throw asInputProblem(error, `task ${id}`, dir);
    }
  });
}

async function problemsOf<T>(field: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof BadHarborInput || error instanceof InputProblem) throw new InputProblem(field, error.message);
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
