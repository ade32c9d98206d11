import { resolve } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import pLimit from 'p-limit';
import type { BlobRef } from '../core/ids.ts';
import type { PinnedTask, TaskList } from '../core/run/trial.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { putJson, readJson } from '../services/blobs/json.ts';
import { BadHarborInput, type TaskCache, TaskChanged, TaskUnreachable, taskDigest } from '../services/harbor/index.ts';

/** Keeps tasks as a blob of the run, so that their list may be long. */
export async function taskList(tasks: readonly PinnedTask[], blobs: BlobStore, runId: string): Promise<TaskList> {
  return { ref: await putJson(blobs.of(runId), tasks), count: tasks.length };
}

/** The tasks of a list. */
export async function readTaskList({ ref }: { readonly ref: BlobRef }, blobs: BlobStore): Promise<readonly PinnedTask[]> {
  // No schema: `taskList` above wrote it, and the store vouches for its bytes.
  return (await readJson(blobs, ref)) as readonly PinnedTask[];
}

/** Task folders read at once. */
const READERS = 16;

/**
 * Tasks below the project root may be edited while a run lives, so it makes sure that they still are what it pinned: trials of a changed
 * task, or of a changed grader, must not be counted with the others. Fails for good with `TaskChanged`, naming the tasks. What a
 * repository's commit holds cannot change.
 */
export async function refuseChanged(projectRoot: string, tasks: readonly PinnedTask[]): Promise<void> {
  const local = tasks.filter(({ source }) => source === undefined);
  const changed = await pLimit(READERS).map(local, async ({ id, path, digest }) => {
    const found = await taskDigest(resolve(projectRoot, path)).catch((error: Error) => error.message);
    return found === digest ? [] : [id];
  });
  const ids = changed.flat();
  if (ids.length === 0) return;
  throw ApplicationFailure.nonRetryable(
    `${ids.length} task(s) changed on disk since the run was started: ${ids.slice(0, 5).join(', ')}${ids.length > 5 ? ', …' : ''}. Put them back and start the run again`,
    'TaskChanged',
  );
}

/**
 * The folder of a task as it was pinned, on this machine. Fails for good with `TaskChanged` or `BadTask`; with `TaskUnreachable`, to be
 * tried again, when its repository does not answer.
 */
export async function openTask(tasks: TaskCache, task: PinnedTask, signal: AbortSignal): Promise<string> {
  try {
    return await tasks.open(task, signal);
  } catch (error) {
    if (error instanceof TaskChanged) throw ApplicationFailure.nonRetryable(error.message, 'TaskChanged');
    if (error instanceof BadHarborInput) throw ApplicationFailure.nonRetryable(`task ${task.id}: ${error.message}`, 'BadTask');
    if (error instanceof TaskUnreachable) throw ApplicationFailure.retryable(`task ${task.id}: ${error.message}`, 'TaskUnreachable');
    throw error;
  }
}
