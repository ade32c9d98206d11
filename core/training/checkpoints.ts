import type { SamplerPath, StatePath } from '../ids.ts';

/** Saved weights after a step: training state to go on from, and sampler weights where they were published. */
export type Checkpoint = { readonly step: number; readonly statePath: StatePath; readonly samplerPath: SamplerPath | null };

/** What a run has saved so far. */
export type CheckpointBook = {
  /** The newest, in the order they were written; a step that was saved again stands where it was written last. */
  readonly checkpoints: readonly Checkpoint[];
  /** The state that the warm-up left, before the first step. */
  readonly warmupState: StatePath | null;
};

/** Checkpoints that are kept: training goes on from one of the newest, and a run carries all of them along. */
const MOST_KEPT = 200;

export const NO_CHECKPOINTS: CheckpointBook = { checkpoints: [], warmupState: null };

/** Where training goes on. */
export type ResumePoint = {
  readonly latest: Checkpoint | null;
  /** The first step to run. */
  readonly nextStep: number;
  /** The state to load; null for a new adapter. */
  readonly restoreFrom: StatePath | null;
};

/** The book with one more checkpoint; an earlier one of the same step is replaced, and the oldest goes when there are many. @throws RangeError for a step that cannot be one */
export function withCheckpoint(book: CheckpointBook, checkpoint: Checkpoint): CheckpointBook {
  const { step } = checkpoint;
  if (!Number.isSafeInteger(step) || step < 0) throw new RangeError(`a checkpoint's step must be a whole number of 0 or more; got ${step}`);
  return { ...book, checkpoints: [...book.checkpoints.filter((known) => known.step !== step), checkpoint].slice(-MOST_KEPT) };
}

/**
 * Where a run goes on: after its highest saved step, from the warm-up's state without one, else from the beginning. `before` leaves out
 * checkpoints of that step and later ones: after a degeneration, those from the first bad step on.
 */
export function resumePoint(book: CheckpointBook, before = Number.POSITIVE_INFINITY): ResumePoint {
  const latest = book.checkpoints
    .filter(({ step }) => step < before)
    .reduce<Checkpoint | null>((best, one) => (best === null || one.step > best.step ? one : best), null);
  return { latest, nextStep: latest === null ? 0 : latest.step + 1, restoreFrom: latest?.statePath ?? book.warmupState };
}
