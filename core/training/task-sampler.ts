import { seededRandom, shuffled } from '../random/seeded.ts';

/** A split or batch size that tasks cannot be drawn from; `code` is stable. */
export class TaskDrawError extends Error {
  readonly code: 'empty' | 'duplicates' | 'batch_size' | 'step';

  constructor(code: 'empty' | 'duplicates' | 'batch_size' | 'step', message: string) {
    super(message);
    this.name = 'TaskDrawError';
    this.code = code;
  }
}

export type TaskDraw = {
  readonly taskIds: readonly string[];
  readonly tasksPerBatch: number;
  /** Zero-based step; the batch depends on nothing else that a run changes, so a resumed run draws what it would have drawn. */
  readonly step: number;
  /** See `seedFromName`. */
  readonly seed: bigint;
};

/**
 * The tasks of one step: min(tasksPerBatch, tasks) of them, none twice. Epochs are seeded permutations of the whole split, one after
 * another. Where a batch runs over the end of an epoch, tasks already in it are moved behind that batch within the new epoch, so every
 * epoch still draws every task exactly once.
 * @throws TaskDrawError
 */
export function drawTasks({ taskIds, tasksPerBatch, step, seed }: TaskDraw): string[] {
  checkTasks(taskIds);
  if (!Number.isInteger(tasksPerBatch) || tasksPerBatch < 1) {
    throw new TaskDrawError('batch_size', `train.tasks_per_batch must be a whole number of at least 1; got ${tasksPerBatch}`);
  }
  if (!Number.isInteger(step) || step < 0) throw new TaskDrawError('step', `a step is a whole number from 0; got ${step}`);
  const size = Math.min(tasksPerBatch, taskIds.length);
  const random = seededRandom(seed);
  let pending: string[] = [];
  for (let current = 0; ; current++) {
    if (pending.length < size) {
      const taken = new Set(pending);
      const epoch = shuffled(taskIds, random);
      const missing = size - pending.length;
      const first = epoch.filter((id) => !taken.has(id)).slice(0, missing);
      const drawn = new Set(first);
      pending = [...pending, ...first, ...epoch.filter((id) => !drawn.has(id))];
    }
    const batch = pending.slice(0, size);
    if (current === step) return batch;
    pending = pending.slice(size);
  }
}

/** The tasks of interim evaluations, drawn from one split: fixed for a run, none twice, at most `count`. @throws TaskDrawError */
export function interimEvalTasks(taskIds: readonly string[], count: number, seed: bigint): string[] {
  checkTasks(taskIds);
  return shuffled(taskIds, seededRandom(seed)).slice(0, count);
}

function checkTasks(taskIds: readonly string[]): void {
  if (taskIds.length === 0) throw new TaskDrawError('empty', 'the split holds no task; name at least one');
  const seen = new Set<string>();
  for (const id of taskIds) {
    if (seen.has(id)) throw new TaskDrawError('duplicates', `task ${JSON.stringify(id)} is in the split twice; list it once`);
    seen.add(id);
  }
}
