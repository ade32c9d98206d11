import type { RunConfig } from '../config/schema.ts';
import type { PinnedTask } from './trial.ts';

/** Trials of one batch: a step, an evaluation, the trajectories of a warm-up. */
const MOST_TRIALS_IN_A_BATCH = 4096;

/** Trials of one run that are open at once. Each has at most two activities open; Temporal is quick up to some 500. */
export const MOST_TRIALS_OPEN = 250;

/** The tasks of a batch go through one message, as id, path and digest. */
const MOST_TASK_LIST_BYTES = 896 * 1024;

/** The held-out tasks' ids with their counts: the run's status has them once for each evaluation. */
export const MOST_TALLY_BYTES = 128 * 1024;

/** Batches of a run that are too large to be handled, by the keys that make them so; none in a run that can go on to its end. */
export function oversizedBatches(config: RunConfig, splits: { readonly train: number; readonly holdout: number }): string[] {
  const { train, warmup, eval: interim, gate } = config;
  const collects = collectsTrajectories(config);
  const batches: readonly (readonly [what: string, trials: number])[] = [
    ['train.tasks_per_batch × train.group_size', Math.min(train.tasks_per_batch, splits.train) * train.group_size],
    ['held-out tasks × gate.k', splits.holdout * gate.k],
    ['training tasks × warmup.rollouts_per_task', collects ? splits.train * warmup.rollouts_per_task : 0],
    ['eval.tasks × eval.k', interim.every > 0 ? Math.min(interim.tasks, splits.train) * interim.k : 0],
  ];
  return batches.flatMap(([what, trials]) =>
    trials > MOST_TRIALS_IN_A_BATCH
      ? [`${what} comes to ${trials} trials in one batch; at most ${MOST_TRIALS_IN_A_BATCH} are handled`]
      : [],
  );
}

/** Lists of tasks that are too large to be handled, in bytes: the ids and paths of very many tasks, or very long ones. */
export function oversizedTaskLists(
  config: RunConfig,
  splits: { readonly train: readonly PinnedTask[]; readonly holdout: readonly PinnedTask[] },
): string[] {
  const { train, holdout } = splits;
  const tallies = holdout.map(({ id }) => ({ taskId: id, executed: config.gate.k, passed: config.gate.k }));
  const lists: readonly (readonly [what: string, bytes: number, most: number])[] = [
    ['the held-out tasks', bytesOf(holdout), MOST_TASK_LIST_BYTES],
    ['the ids and counts of the held-out tasks', bytesOf(tallies), MOST_TALLY_BYTES],
    ['train.tasks_per_batch: the tasks of one step', largest(train, config.train.tasks_per_batch), MOST_TASK_LIST_BYTES],
    ['eval.tasks: the tasks of an interim evaluation', config.eval.every > 0 ? largest(train, config.eval.tasks) : 0, MOST_TASK_LIST_BYTES],
    ['the training tasks, which a warm-up plays,', collectsTrajectories(config) ? bytesOf(train) : 0, MOST_TASK_LIST_BYTES],
  ];
  return lists.flatMap(([what, bytes, most]) =>
    bytes > most ? [`${what} come to ${bytes} bytes; at most ${most} are handled: take fewer tasks, or shorter ids and paths`] : [],
  );
}

const collectsTrajectories = ({ warmup }: RunConfig) => warmup.steps > 0 && warmup.trajectories_from === null;

const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value)).length;

/** Bytes of the largest list of so many of the tasks. */
function largest(tasks: readonly PinnedTask[], count: number): number {
  const sizes = tasks.map(bytesOf).sort((a, b) => b - a);
  return sizes.slice(0, count).reduce((sum, bytes) => sum + bytes + 1, 0);
}
