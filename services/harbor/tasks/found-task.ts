import { basename, resolve } from 'node:path';
import { BadHarborInput } from '../errors.ts';
import { tidyRepositoryPath } from './git-url.ts';
import type { RegistryTask } from './registry-file.ts';

/** A task as a job template names it, before anything is pinned. Its id is the name of its folder. */
export type FoundTask =
  | { readonly kind: 'local'; readonly id: string; readonly dir: string }
  /** `ref`: branch, tag or commit; null is the repository's HEAD. */
  | { readonly kind: 'git'; readonly id: string; readonly url: string; readonly ref: string | null; readonly path: string };

export function localTask(projectRoot: string, path: string): FoundTask {
  const dir = resolve(projectRoot, path);
  return { kind: 'local', id: basename(dir), dir };
}

/** @throws BadHarborInput for a path that is no folder of a repository */
export function gitTask(url: string, ref: string | null, path: string): FoundTask {
  const tidy = path.startsWith('/') ? null : tidyRepositoryPath(path);
  if (tidy === null || tidy === '') throw new BadHarborInput(`path ${path} is no folder within the repository ${url}`);
  return { kind: 'git', id: basename(tidy), url, ref, path: tidy };
}

/** A registry's task; `repo` is where those without an address of their own are, null for folders here. */
export function registryTask(
  { git_url, git_commit_id, path }: RegistryTask,
  projectRoot: string,
  repo: { readonly url: string; readonly commit: string } | null,
): FoundTask {
  const url = git_url ?? repo?.url;
  return url === undefined ? localTask(projectRoot, path) : gitTask(url, git_commit_id ?? repo?.commit ?? null, path);
}

/** Where a task comes from, for a person. */
export function placeOf(task: FoundTask): string {
  if (task.kind === 'local') return task.dir;
  return `${task.path} of ${task.url}${task.ref === null ? '' : ` at ${task.ref}`}`;
}
