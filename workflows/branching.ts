import type { Run } from './run.ts';
import { saveCheckpoint } from './saving.ts';
import { openTraining } from './training-loop.ts';

/**
 * Makes the student of a run that starts from another's state, and saves it at once as the run's own: whatever becomes of the other's
 * state from here on, this run does not need it.
 */
export async function openBranched(run: Run): Promise<void> {
  await openTraining(run);
  await saveCheckpoint(run);
}
