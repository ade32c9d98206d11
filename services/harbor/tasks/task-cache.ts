import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { basename, join, relative, resolve } from 'node:path';
import pLimit from 'p-limit';
import type { PinnedTask, TaskSource } from '../../../core/run/trial.ts';
import { BadHarborInput, TaskChanged } from '../errors.ts';
import { taskContentDigest, taskDigest, taskProblem } from '../task-folder.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { mustBeBelow } from './below-root.ts';
import type { FoundTask } from './found-task.ts';
import { checkOut, commitOf, fetchCommit, type GitOptions } from './git.ts';
import { refuseUnfetched } from './lfs.ts';
import type { RemoteReader } from './remote-datasets.ts';
import { TaskShelf } from './task-shelf.ts';
import { copyTask } from './task-tree.ts';

/** A pinned task with a digest of what it asks and checks, whatever it is called. */
export type TaskPin = PinnedTask & { readonly contentDigest: string };

export type TaskCacheOptions = { readonly dir: string; readonly projectRoot: string };

/** Task folders read at once; more would only open more files. */
const READERS = 16;
/** Repositories fetched at once. */
const FETCHERS = 4;

/** The tasks of runs on this machine: pinned by their content when a run is resolved, and opened as they were pinned for every trial. */
export class TaskCache {
  readonly #shelf: TaskShelf;
  readonly #projectRoot: string;
  readonly #opening = new Map<string, Promise<string>>();

  constructor({ dir, projectRoot }: TaskCacheOptions) {
    this.#shelf = new TaskShelf(dir);
    this.#projectRoot = projectRoot;
  }

  /**
   * The folder of a pinned task, as it was pinned: fetched or copied here once, however many trials ask, and never changed afterwards by
   * what happens to its source. Nobody may write to it.
   * @throws TaskChanged when its source holds something else by now, TaskUnreachable when it cannot be fetched now, BadHarborInput
   */
  async open(task: PinnedTask, signal?: AbortSignal): Promise<string> {
    const key = `${task.digest} ${nameOf(task)}`;
    // A fetch is not ended with the trial that was the first to ask: others wait for it, and what it brings stays.
    const opening = this.#opening.get(key) ?? this.#open(task).finally(() => this.#opening.delete(key));
    this.#opening.set(key, opening);
    return unlessAborted(opening, signal);
  }

  /** What reads remote datasets for a task index. */
  reader(signal?: AbortSignal): RemoteReader {
    return { projectRoot: this.#projectRoot, scratch: (work) => this.#shelf.scratch(work), signal };
  }

  /** Pins tasks by their content as it is now, in their order; what is elsewhere is fetched. @throws as `open` does */
  async pin(tasks: readonly FoundTask[], signal?: AbortSignal): Promise<readonly TaskPin[]> {
    const git: GitOptions = { signal };
    const commits = new Map<string, Promise<string>>();
    const commitFor = ({ url, ref }: Extract<FoundTask, { kind: 'git' }>) => {
      const key = `${url} ${ref}`;
      const known = commits.get(key) ?? commitOf(url, ref, git);
      commits.set(key, known);
      return known;
    };
    const [readers, fetchers] = [pLimit(READERS), pLimit(FETCHERS)];
    const trees = new Map<string, CommitTree>();
    for (const task of tasks) {
      if (task.kind !== 'git') continue;
      const commit = await commitFor(task);
      const key = `${task.url} ${commit}`;
      const tree = trees.get(key) ?? { url: task.url, commit, paths: [] };
      tree.paths.push(task.path);
      trees.set(key, tree);
    }
    const digests = new Map<string, string>();
    await fetchers.map([...trees.values()], async (tree) => {
      for (const [path, digest] of await this.#pinTree(tree, git)) digests.set(`${tree.url} ${tree.commit} ${path}`, digest);
    });
    return Promise.all(
      tasks.map(async (task) => {
        if (task.kind === 'local') return readers(() => this.#pinLocal(task.dir, task.id));
        const commit = await commitFor(task);
        const digest = digests.get(`${task.url} ${commit} ${task.path}`) as string;
        return this.#pinned({ id: task.id, path: task.path, digest, source: { url: task.url, commit } });
      }),
    );
  }

  /** Removes what dead processes left, and tasks that nobody used for a long time. */
  sweep(): Promise<void> {
    return this.#shelf.sweep();
  }

  async #open(task: PinnedTask): Promise<string> {
    const name = nameOf(task);
    const held = await this.#shelf.get(task.digest, name);
    if (held !== null) return held;
    return this.#shelf.scratch(async (dir) => {
      const made = await this.#fetch(task, dir);
      const digest = await taskDigest(made);
      if (digest !== task.digest) throw changed(task, digest);
      return this.#shelf.put(made, digest, name);
    });
  }

  /** Gets a task from its source into a folder below `dir`. */
  async #fetch({ id, path, source, digest }: PinnedTask, dir: string): Promise<string> {
    const made = join(dir, 'task');
    if (source) {
      const { url, commit } = source;
      await fetchCommit(url, commit, join(dir, 'repo'));
      await checkOut(url, commit, join(dir, 'repo'), [path]);
      await takeOut(join(dir, 'repo'), { url, commit }, path, made);
    } else {
      await mustBeBelow(this.#projectRoot, path);
      const from = resolve(this.#projectRoot, path);
      await copyTask(from, made).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'ENOENT' ? changed({ id, path, digest }, 'nothing there') : error;
      });
    }
    return made;
  }

  /** Digests of a commit's tasks, from an earlier fetch as far as there was one; the others are fetched together. */
  async #pinTree({ url, commit, paths }: CommitTree, git: GitOptions): Promise<Map<string, string>> {
    const digests = new Map<string, string>();
    for (const path of new Set(paths)) {
      const digest = await this.#notedDigest(url, commit, path);
      if (digest !== null && (await this.#shelf.get(digest, basename(path))) !== null) digests.set(path, digest);
    }
    const missing = [...new Set(paths)].filter((path) => !digests.has(path));
    if (missing.length === 0) return digests;
    await this.#shelf.scratch(async (dir) => {
      const repo = join(dir, 'repo');
      await fetchCommit(url, commit, repo, git);
      await checkOut(url, commit, repo, missing, git);
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

type CommitTree = { readonly url: string; readonly commit: string; readonly paths: string[] };

/** Takes one task out of a work tree. @throws BadHarborInput for what is no task, or is not whole */
async function takeOut(repo: string, { url, commit }: { url: string; commit: string }, path: string, made: string): Promise<void> {
  const told = `${path} of ${url} at ${commit}`;
  await copyTask(join(repo, path), made).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') throw new BadHarborInput(`there is no folder ${told}`);
    throw error;
  });
  const problem = await taskProblem(made);
  if (problem !== null) throw new BadHarborInput(`task ${told} ${problem}`);
  await refuseUnfetched(made, told);
}

/** The name of a task's folder: harbor's name for a task that does not name itself. */
const nameOf = ({ path }: Pick<PinnedTask, 'path'>) => basename(path);

function changed({ id, path, source, digest }: PinnedTask, found: string): TaskChanged {
  const where = source === undefined ? `${path} below this worker's project root` : `${path} of ${source.url} at ${source.commit}`;
  const advice =
    source === undefined
      ? 'Put it back as it was, on every machine with rollout workers, or start a new run'
      : 'The source gives out something else than it did: start a new run';
  return new TaskChanged(`task ${id} is not what the run pinned: ${where} is ${found}, pinned was ${digest}. ${advice}`);
}
