import type { RunConfig } from '../config/schema.ts';

/** Trials of one batch that fit through one message of a workflow, which Temporal limits to 2 MiB. */
export const MOST_TRIALS_IN_A_BATCH = 2000;

/** Batches of a run that are too large to be handled, by the keys that make them so; none in a run that can go on to its end. */
export function oversizedBatches(config: RunConfig, splits: { readonly train: number; readonly holdout: number }): string[] {
  const { train, warmup, eval: interim, gate } = config;
  const collects = warmup.steps > 0 && warmup.trajectories_from === null;
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
