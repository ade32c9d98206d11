import type { RunConfig } from '../core/config/index.ts';
import { BranchRefused, type FoundBranch, findBranch, seenProblem } from '../core/run/branch.ts';
import { readBranchSource } from '../services/blobs/branch-source.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { TaskPin } from '../services/harbor/index.ts';
import { InputProblem } from './input-problem.ts';

type BranchOrder = {
  /** The run that is to start. */
  readonly runId: string;
  readonly config: RunConfig;
  readonly holdout: readonly TaskPin[];
  readonly objects: ObjectStore;
};

/** What `from` names, checked against the config and the held-out tasks; null where the run starts from a fresh adapter. @throws InputProblem */
export async function branchNamed(from: string | undefined, { runId, config, holdout, objects }: BranchOrder): Promise<FoundBranch | null> {
  if (from === undefined) return null;
  try {
    const found = await findBranch(from, config, (id) => readBranchSource(objects, id));
    if (found.branch.source?.runId === runId) throw new BranchRefused('a run cannot start from itself');
    const problem = seenProblem(found.trainedBy, holdout);
    if (problem !== null) throw new BranchRefused(problem);
    return found;
  } catch (error) {
    throw error instanceof BranchRefused ? new InputProblem('from', error.message) : error;
  }
}
