import { BadHarborInput, TaskUnreachable } from '../errors.ts';
import type { JobDataset } from '../job-tasks.ts';
import { type FoundTask, gitTask, registryTask } from './found-task.ts';
import { commitOf, fetchCommit, type GitOptions, listFiles, readFileAt } from './git.ts';
import { tidyRepositoryPath } from './git-url.ts';
import { datasetOf } from './registry-file.ts';
import { parseRepo } from './repo-source.ts';

const DEFAULT_FOLDER = 'tasks';
const REGISTRY_FILE = 'registry.json';
const MAX_REGISTRY_MS = 60_000;

export type RemoteReader = {
  readonly projectRoot: string;
  /** Runs `work` with a folder of its own, which is removed afterwards. */
  readonly scratch: <T>(work: (dir: string) => Promise<T>) => Promise<T>;
  readonly signal?: AbortSignal | undefined;
};

/** True for a dataset whose tasks are only known when somebody elsewhere is asked. */
export const isRemote = ({ repo, registry_url }: JobDataset) => repo !== undefined || registry_url !== undefined;

/** All tasks of a remote dataset, its filters not yet applied. @throws BadHarborInput, TaskUnreachable */
export async function remoteTasks(dataset: JobDataset, reader: RemoteReader): Promise<readonly FoundTask[]> {
  const { repo, name, version, registry_url: url } = dataset;
  if (repo !== undefined) return reader.scratch((dir) => tasksOfRepository(repo, dataset, dir, reader));
  if (name === undefined || url === undefined) throw new BadHarborInput('needs "name" and "registry_url"');
  const text = await download(url, reader.signal);
  return datasetOf(text, url, name, version).map((task) => registryTask(task, reader.projectRoot, null));
}

async function tasksOfRepository(
  repo: string,
  dataset: JobDataset,
  dir: string,
  { projectRoot, signal }: RemoteReader,
): Promise<FoundTask[]> {
  const { url, ref, subdir } = parseRepo(repo);
  if (dataset.path !== undefined && subdir !== null)
    throw new BadHarborInput(`names the tasks' folder twice: "path" is ${dataset.path}, and "repo" ends in /tree/…/${subdir}`);
  const git: GitOptions = { signal };
  const commit = await commitOf(url, ref, git);
  await fetchCommit(url, commit, dir, git);
  const { name } = dataset;
  if (name !== undefined) {
    const file = registryPath(dataset.registry_path);
    const tasks = datasetOf(await readFileAt(url, commit, dir, file, git), `${file} of ${url}`, name, dataset.version);
    return tasks.map((task) => registryTask(task, projectRoot, { url, commit }));
  }
  const folder = tidyRepositoryPath(dataset.path ?? subdir ?? DEFAULT_FOLDER);
  if (folder === null) throw new BadHarborInput(`path ${dataset.path ?? subdir} leads out of the repository`);
  const prefix = folder === '' ? '' : `${folder}/`;
  const files = await listFiles(url, commit, dir, folder, git);
  const names = files.flatMap((file) => /^([^/]+)\/task\.toml$/.exec(file.slice(prefix.length))?.[1] ?? []);
  if (names.length === 0)
    throw new BadHarborInput(
      `${url} has no task (a folder with a task.toml) in ${folder || 'its top folder'} at ${commit}: set "path" to where they are`,
    );
  return names.sort().map((task) => gitTask(url, commit, `${prefix}${task}`));
}

function registryPath(given: string | undefined): string {
  if (given === undefined) return REGISTRY_FILE;
  const path = tidyRepositoryPath(given);
  if (path === null) throw new BadHarborInput(`registry_path ${given} leads out of the repository`);
  return path.endsWith('.json') ? path : `${path}/${REGISTRY_FILE}`;
}

async function download(url: string, signal: AbortSignal | undefined): Promise<string> {
  const limit = AbortSignal.timeout(MAX_REGISTRY_MS);
  const answer = await fetch(url, { signal: signal ? AbortSignal.any([signal, limit]) : limit }).catch((error: Error) => {
    signal?.throwIfAborted();
    throw new TaskUnreachable(`registry ${url} cannot be reached: ${(error.cause as Error | undefined)?.message ?? error.message}`);
  });
  if (answer.ok) return answer.text();
  const told = `registry ${url} answers ${answer.status} ${answer.statusText}`;
  throw answer.status >= 500 || answer.status === 429 ? new TaskUnreachable(told) : new BadHarborInput(told);
}
