import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { BadHarborInput } from '../errors.ts';
import type { JobDataset, JobTask } from '../job-tasks.ts';
import type { JobTemplate } from '../job-template.ts';
import { didYouMean } from '../nearest.ts';
import { taskProblem } from '../task-folder.ts';
import { mustBeBelow } from './below-root.ts';
import { filterNames } from './filter.ts';
import { type FoundTask, gitTask, localTask, placeOf, registryTask } from './found-task.ts';
import { datasetOf } from './registry-file.ts';
import { isRemote, type RemoteReader, remoteTasks } from './remote-datasets.ts';

/** Where a template's tasks are, by their ids. */
export class TaskIndex {
  readonly #alone: ReadonlyMap<string, readonly FoundTask[]>;
  readonly #sets: ReadonlyMap<string, readonly FoundTask[]>;
  readonly #places: readonly string[];
  /** Datasets that were not read, as only somebody elsewhere knows their tasks. */
  readonly unread: readonly string[];

  constructor(alone: readonly FoundTask[], sets: readonly FoundTask[], places: readonly string[], unread: readonly string[]) {
    this.#alone = byId(alone);
    this.#sets = byId(sets);
    this.#places = places;
    this.unread = unread;
  }

  /**
   * The tasks of these ids, local ones checked; a single task of the template wins over one of the same name in a dataset. Null stands for
   * one that may be in an unread dataset. @throws BadHarborInput, a line for every id that is nowhere, twice there, or no task
   */
  async find(ids: readonly string[]): Promise<readonly (FoundTask | null)[]> {
    const problems: string[] = [];
    const found = await Promise.all(
      ids.map(async (id) => {
        const task = this.#named(id);
        if (task === null || (typeof task === 'object' && task.kind !== 'local')) return task;
        const problem = typeof task === 'string' ? task : await taskProblem(task.dir);
        if (problem !== null) problems.push(typeof task === 'string' ? task : `task folder ${task.dir} ${problem}`);
        return typeof task === 'string' ? null : task;
      }),
    );
    if (problems.length > 0) throw new BadHarborInput(problems.join('\n'));
    return found;
  }

  /** A task, null where it may be in what was not read, or why it is none. */
  #named(id: string): FoundTask | string | null {
    const tasks = this.#alone.get(id) ?? this.#sets.get(id) ?? [];
    const places = [...new Set(tasks.map(placeOf))];
    if (places.length > 1)
      return `task "${id}" is in more than one place (${places.join(', ')}): leave all but one out with exclude_task_names, or name one in tasks`;
    if (tasks[0] !== undefined) return tasks[0];
    if (this.unread.length > 0) return null;
    const near = didYouMean(id, [...this.#alone.keys(), ...this.#sets.keys()]);
    return `task "${id}" is not in the job template's tasks or datasets (${this.#places.join(', ')})${near}`;
  }
}

function byId(tasks: readonly FoundTask[]): Map<string, FoundTask[]> {
  const map = new Map<string, FoundTask[]>();
  for (const task of tasks) map.set(task.id, [...(map.get(task.id) ?? []), task]);
  return map;
}

/**
 * Looks up what a template's tasks and datasets hold; relative paths count from `projectRoot`, and must stay below it. Without `remote`
 * nothing is fetched or asked for. @throws BadHarborInput, a line for every place that is wrong; TaskUnreachable
 */
export async function indexTasks(template: JobTemplate, projectRoot: string, remote: RemoteReader | null): Promise<TaskIndex> {
  const problems: string[] = [];
  const [places, unread]: [string[], string[]] = [[], []];
  const telling = async <T>(field: string, work: () => Promise<readonly T[]>): Promise<readonly T[]> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof BadHarborInput)) throw error;
      problems.push(...error.message.split('\n').map((line) => `${field}: ${line}`));
      return [];
    }
  };
  const alone: FoundTask[] = [];
  for (const [at, entry] of (template.tasks ?? []).entries()) {
    alone.push(...(await telling(`tasks.${at}`, async () => [await singleTask(entry, projectRoot)])));
  }
  const sets: FoundTask[] = [];
  for (const [at, dataset] of (template.datasets ?? []).entries()) {
    const place = nameOf(dataset, projectRoot);
    places.push(place);
    if (isRemote(dataset) && remote === null) unread.push(place);
    else sets.push(...(await telling(`datasets.${at}`, () => tasksOf(dataset, projectRoot, remote))));
  }
  if (problems.length > 0) throw new BadHarborInput(problems.join('\n'));
  return new TaskIndex(alone, sets, [...alone.map(placeOf), ...places], unread);
}

async function singleTask({ path, git_url, git_commit_id }: JobTask, projectRoot: string): Promise<FoundTask> {
  if (git_url !== undefined) return gitTask(git_url, git_commit_id ?? null, path);
  await mustBeBelow(projectRoot, path);
  return localTask(projectRoot, path);
}

async function tasksOf(dataset: JobDataset, projectRoot: string, remote: RemoteReader | null): Promise<readonly FoundTask[]> {
  const isFolder = dataset.path !== undefined && dataset.repo === undefined;
  const all = isFolder ? await tasksInFolder(dataset.path as string, projectRoot) : await listedTasks(dataset, projectRoot, remote);
  const kept = new Set(
    filterNames(
      all.map(({ id }) => id),
      dataset,
    ),
  );
  const tasks = all.filter(({ id }) => kept.has(id));
  if (!isFolder) return dataset.n_tasks === undefined ? tasks : tasks.slice(0, dataset.n_tasks);
  return fitTasks(tasks, dataset.n_tasks, resolve(projectRoot, dataset.path as string));
}

async function listedTasks(dataset: JobDataset, projectRoot: string, remote: RemoteReader | null): Promise<readonly FoundTask[]> {
  if (remote !== null && isRemote(dataset)) return remoteTasks(dataset, remote);
  const { registry_path: path = '', name = '', version } = dataset;
  await mustBeBelow(projectRoot, path);
  const text = await readFile(resolve(projectRoot, path), 'utf8').catch((error: Error) => {
    throw new BadHarborInput(`registry_path: ${path} cannot be read: ${error.message}`);
  });
  return datasetOf(text, path, name, version).map((task) => registryTask(task, projectRoot, null));
}

async function tasksInFolder(path: string, projectRoot: string): Promise<FoundTask[]> {
  await mustBeBelow(projectRoot, path);
  const folder = resolve(projectRoot, path);
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => {
    throw new BadHarborInput(`path: folder ${folder} does not exist; it should hold the tasks, a folder each`);
  });
  return entries
    .filter((entry) => !entry.name.startsWith('.') && !entry.isFile())
    .map(({ name }) => name)
    .sort()
    .map((name) => localTask(projectRoot, join(folder, name)));
}

/**
 * harbor leaves out what is no task without a word. Folders are looked at until it is known that there are tasks, and which are the first
 * `most`; the others only when a run asks for them.
 */
async function fitTasks(tasks: readonly FoundTask[], most: number | undefined, folder: string): Promise<readonly FoundTask[]> {
  const [fit, unfit]: [FoundTask[], string[]] = [[], []];
  for (const task of tasks) {
    if (fit.length >= (most ?? 1)) break;
    const problem = task.kind === 'local' ? await taskProblem(task.dir) : null;
    if (problem === null) fit.push(task);
    else unfit.push(`${task.id} ${problem}`);
  }
  if (fit.length === 0) {
    const why = unfit.length === 0 ? 'it is empty, or its filters leave nothing' : unfit.slice(0, 5).join('; ');
    throw new BadHarborInput(`path: folder ${folder} holds no harbor task: ${why}`);
  }
  return most === undefined ? tasks : fit;
}

function nameOf({ path, repo, name, version, registry_path, registry_url }: JobDataset, projectRoot: string): string {
  if (repo !== undefined) return `repository ${repo}`;
  if (path !== undefined) return resolve(projectRoot, path);
  return `dataset ${name}${version ? `@${version}` : ''} of ${registry_path ?? registry_url}`;
}
