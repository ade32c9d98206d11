import { resolve } from 'node:path';
import type { RunConfig } from '../../core/config/index.ts';
import { some } from '../../core/run/task-ids.ts';
import { BadHarborInput } from '../../services/harbor/errors.ts';
import { readJobTemplate } from '../../services/harbor/job-template.ts';
import { taskContentDigest } from '../../services/harbor/task-folder.ts';
import { indexTasks } from '../../services/harbor/tasks/task-index.ts';
import type { Problems } from './problems.ts';

type LocalTask = { readonly id: string; readonly dir: string };

export type Splits = { readonly train: readonly string[]; readonly holdout: readonly string[] };

/**
 * Tells what is wrong with the job template and the task folders, as this machine sees them: a missing or wrong template, a task that is
 * nowhere or lacks a file, and a held-out task with the content of a training task under another name. Nothing is fetched: tasks of
 * repositories are looked at by the run's first activity.
 */
export async function checkLocalTasks(projectRoot: string, config: RunConfig, splits: Splits, problems: Problems): Promise<void> {
  const file = resolve(projectRoot, config.harbor.job_template);
  const index = await telling(problems, 'template', async () => {
    const template = await readJobTemplate(file);
    return indexTasks(template, projectRoot, null).catch((error: unknown) => {
      if (!(error instanceof BadHarborInput)) throw error;
      throw new BadHarborInput(error.message.replaceAll(/^/gm, `${file}: `));
    });
  });
  if (index === null) return;
  const found = await telling(problems, 'tasks', async () => {
    const local = async (ids: readonly string[]) => (await index.find(ids)).filter((task) => task?.kind === 'local');
    return { train: await local(splits.train), holdout: await local(splits.holdout) };
  });
  if (found !== null) problems.add('overlap', ...(await sameContent(found.train, found.holdout)));
}

async function telling<T>(problems: Problems, kind: 'template' | 'tasks', work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof BadHarborInput)) throw error;
    problems.add(kind, ...error.message.split('\n'));
    return null;
  }
}

async function sameContent(train: readonly LocalTask[], holdout: readonly LocalTask[]): Promise<string[]> {
  const trained = new Map<string, string>();
  for (const task of train) trained.set(await taskContentDigest(task.dir), task.id);
  const pairs: string[] = [];
  for (const task of holdout) {
    const twin = trained.get(await taskContentDigest(task.dir));
    if (twin !== undefined && twin !== task.id) pairs.push(`${task.id} = ${twin}`);
  }
  return pairs.length === 0 ? [] : [`--tasks and --holdout overlap by content: ${some(pairs)}; held-out tasks must not be trained on`];
}
