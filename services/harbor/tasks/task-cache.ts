import { join, resolve } from 'node:path';
import type { PinnedTask } from '../../../core/run/trial.ts';
import { TaskChanged } from '../errors.ts';
import { taskDigest } from '../task-folder.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { mustBeBelow } from './below-root.ts';
import { checkOut, fetchCommit } from './git.ts';
import { takeOut } from './git-task.ts';
import { nameOf, TaskPins } from './task-pins.ts';
import { TaskShelf } from './task-shelf.ts';
import { copyTask } from './task-tree.ts';

export type TaskCacheOptions = { readonly dir: string; readonly projectRoot: string };

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

  /** Pins the tasks of one run, which is resolved now. `signal` ends its fetches. */
  pinning(signal?: AbortSignal): TaskPins {
    return new TaskPins(this.#shelf, this.#projectRoot, signal);
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
}

function changed({ id, path, source, digest }: PinnedTask, found: string): TaskChanged {
  const where = source === undefined ? `${path} below this worker's project root` : `${path} of ${source.url} at ${source.commit}`;
  const advice =
    source === undefined
      ? 'Put it back as it was, on every machine with rollout workers, or start a new run'
      : 'The source gives out something else than it did: start a new run';
  return new TaskChanged(`task ${id} is not what the run pinned: ${where} is ${found}, pinned was ${digest}. ${advice}`);
}
