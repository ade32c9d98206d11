import type { RunConfig } from '../core/config/index.ts';
import { BadHarborInput, indexTasks, type JobTemplate, parseJobTemplate, type TaskCache, type TaskPin } from '../services/harbor/index.ts';
import { read } from './input-files.ts';
import { InputProblem } from './input-problem.ts';

/** Ids of both splits, by the names that a run's input has for them. */
export type SplitIds = { readonly taskIds: readonly string[]; readonly holdoutTaskIds: readonly string[] };

export type ResolvedTasks = {
  readonly jobTemplate: JobTemplate;
  readonly templateText: string;
  readonly train: readonly TaskPin[];
  readonly holdout: readonly TaskPin[];
};

export type SplitDeps = { readonly projectRoot: string; readonly tasks: TaskCache; readonly signal?: AbortSignal | undefined };

/**
 * Reads the job template and pins every task of both splits by its content; tasks of repositories are fetched, at the commit that their
 * ref is at now. @throws InputProblem; TaskUnreachable, which may pass
 */
export async function resolveTasks(config: RunConfig, ids: SplitIds, { projectRoot, tasks, signal }: SplitDeps): Promise<ResolvedTasks> {
  const path = config.harbor.job_template;
  const templateText = await read(projectRoot, path, 'harbor.job_template');
  const pins = tasks.pinning(signal);
  const { jobTemplate, index } = await problemsOf('harbor.job_template', async () => {
    const template = parseJobTemplate(templateText, path);
    return { jobTemplate: template, index: await indexTasks(template, projectRoot, pins.reader) };
  });
  const pin = (split: keyof SplitIds) =>
    problemsOf(split, async () => {
      const found = await index.find(ids[split]);
      return pins.pin(found.filter((task) => task !== null)); // with a reader nothing was left unread
    });
  return { jobTemplate, templateText, train: await pin('taskIds'), holdout: await pin('holdoutTaskIds') };
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
export function refuseOverlap(train: readonly TaskPin[], holdout: readonly TaskPin[]): void {
  const ids = new Set(train.map(({ id }) => id));
  const contents = new Map(train.map(({ contentDigest, id }) => [contentDigest, id]));
  for (const { id, contentDigest } of holdout) {
    if (ids.has(id)) throw new InputProblem('holdoutTaskIds', `task ${id} is in the training split too`);
    const twin = contents.get(contentDigest);
    if (twin !== undefined) throw new InputProblem('holdoutTaskIds', `task ${id} has the same content as training task ${twin}`);
  }
}
