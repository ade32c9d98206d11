import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import pLimit from 'p-limit';
import type { PinnedTask, TaskSource } from '../../../core/run/trial.ts';
import { taskContentDigest, taskDigest } from '../task-folder.ts';
import { mustBeBelow } from './below-root.ts';
import type { FoundTask } from './found-task.ts';
import { checkOut, commitOf, fetchCommit, type GitOptions } from './git.ts';
import { takeOut } from './git-task.ts';
import type { RemoteReader } from './remote-datasets.ts';
import type { TaskShelf } from './task-shelf.ts';

/** A pinned task with a digest of what it asks and checks, whatever it is called. */
export type TaskPin = PinnedTask & { readonly contentDigest: string };

type GitTask = Extract<FoundTask, { kind: 'git' }>;
type CommitTree = { readonly url: string; readonly commit: string; readonly paths: string[] };

/** Task folders read at once; more would only open more files. */
const READERS = 16;
/** Repositories fetched at once. */
const FETCHERS = 4;

/** Pins the tasks of one run by their content as it is now. A branch or a tag means one commit for the whole run, whoever asks when. */
export class TaskPins {
  readonly #shelf: TaskShelf;
  readonly #projectRoot: string;
  readonly #git: GitOptions;
  readonly #commits = new Map<string, Promise<string>>();

  constructor(shelf: TaskShelf, projectRoot: string, signal?: AbortSignal) {
    this.#shelf = shelf;
    this.#projectRoot = projectRoot;
    this.#git = { signal };
  }

  /** What reads remote datasets for a task index. */
  get reader(): RemoteReader {
    return { projectRoot: this.#projectRoot, scratch: (work) => this.#shelf.scratch(work), signal: this.#git.signal };
  }

  /** In the order of `tasks`; what is elsewhere is fetched, and kept. @throws BadHarborInput, TaskUnreachable */
  async pin(tasks: readonly FoundTask[]): Promise<readonly TaskPin[]> {
    const [readers, fetchers] = [pLimit(READERS), pLimit(FETCHERS)];
    const trees = new Map<string, CommitTree>();
    for (const task of tasks) {
      if (task.kind !== 'git') continue;
      const commit = await this.#commitFor(task);
      const key = `${task.url} ${commit}`;
      const tree = trees.get(key) ?? { url: task.url, commit, paths: [] };
      tree.paths.push(task.path);
      trees.set(key, tree);
    }
    const digests = new Map<string, string>();
    await fetchers.map([...trees.values()], async (tree) => {
      for (const [path, digest] of await this.#pinTree(tree)) digests.set(`${tree.url} ${tree.commit} ${path}`, digest);
    });
    return Promise.all(
      tasks.map(async (task) => {
        if (task.kind === 'local') return readers(() => this.#pinLocal(task.dir, task.id));
        const commit = await this.#commitFor(task);
        const digest = digests.get(`${task.url} ${commit} ${task.path}`) as string;
        return this.#pinned({ id: task.id, path: task.path, digest, source: { url: task.url, commit } });
      }),
    );
  }

  #commitFor({ url, ref }: GitTask): Promise<string> {
    const key = `${url} ${ref}`;
    const known = this.#commits.get(key) ?? commitOf(url, ref, this.#git);
    this.#commits.set(key, known);
    return known;
  }

  /** Digests of a commit's tasks, from an earlier fetch as far as there was one; the others are fetched together. */
  async #pinTree({ url, commit, paths }: CommitTree): Promise<Map<string, string>> {
    const digests = new Map<string, string>();
    for (const path of new Set(paths)) {
      const digest = await this.#notedDigest(url, commit, path);
      if (digest !== null && (await this.#shelf.get(digest, basename(path))) !== null) digests.set(path, digest);
    }
    const missing = [...new Set(paths)].filter((path) => !digests.has(path));
    if (missing.length === 0) return digests;
    await this.#shelf.scratch(async (dir) => {
      const repo = join(dir, 'repo');
      await fetchCommit(url, commit, repo, this.#git);
      await checkOut(url, commit, repo, missing, this.#git);
      for (const [at, path] of missing.entries()) {
        const made = join(dir, `task-${at}`);
        await takeOut(repo, { url, commit }, path, made);
        const digest = await taskDigest(made);
        await this.#shelf.put(made, digest, basename(path));
        await this.#noteDigest(dir, url, commit, path, digest);
        digests.set(path, digest);
      }
    });
    return digests;
  }

  async #pinLocal(dir: string, id: string): Promise<TaskPin> {
    await mustBeBelow(this.#projectRoot, dir);
    const [digest, contentDigest] = [await taskDigest(dir), await taskContentDigest(dir)];
    return { id, path: relative(this.#projectRoot, dir), digest, contentDigest };
  }

  async #pinned(task: PinnedTask & { readonly source: TaskSource }): Promise<TaskPin> {
    return { ...task, contentDigest: await taskContentDigest(this.#shelf.folderOf(task.digest, nameOf(task))) };
  }

  /** What a folder of a commit came to when it was fetched: it is always the same. */
  async #notedDigest(url: string, commit: string, path: string): Promise<string | null> {
    const text = await readFile(this.#noteOf(url, commit, path), 'utf8').catch(() => '');
    return /^sha256:[0-9a-f]{64}$/.test(text) ? text : null;
  }

  async #noteDigest(scratch: string, url: string, commit: string, path: string, digest: string): Promise<void> {
    const [partial, note] = [join(scratch, 'note'), this.#noteOf(url, commit, path)];
    await mkdir(join(note, '..'), { recursive: true });
    await writeFile(partial, digest);
    await rename(partial, note);
  }

  #noteOf(url: string, commit: string, path: string): string {
    return join(
      this.#shelf.dir,
      'commits',
      createHash('sha256')
        .update(JSON.stringify([url, commit, path]))
        .digest('hex'),
    );
  }
}

/** The name of a task's folder: harbor's name for a task that does not name itself. */
export const nameOf = ({ path }: Pick<PinnedTask, 'path'>) => basename(path);
