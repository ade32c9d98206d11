import type { RunConfig } from '../../core/config/index.ts';
import { type Branch, BranchRefused, findBranch, parseFrom, seenProblem } from '../../core/run/branch.ts';
import { readBranchSource } from '../../services/blobs/branch-source.ts';
import { openObjectStore } from '../../services/blobs/open.ts';
import { readAppSettings } from '../../services/settings/index.ts';
import type { Problems } from './problems.ts';

type Asked = {
  readonly projectRoot: string;
  /** Null where they cannot be used: then only the form of `from` is looked at. */
  readonly config: RunConfig | null;
  readonly holdout: readonly string[] | null;
  /** Only the workers reach the store. */
  readonly elsewhere: boolean;
  readonly problems: Problems;
};

/** What `--from` names, as the store of this machine's settings has it; null where that cannot be told. `problems` is told why it cannot be started from. */
export async function findLocalBranch(from: string, { projectRoot, config, holdout, elsewhere, problems }: Asked): Promise<Branch | null> {
  try {
    parseFrom(from);
    if (elsewhere || config === null || holdout === null) return null;
    const objects = await openObjectStore(readAppSettings(projectRoot));
    const { branch, trainedBy } = await findBranch(from, config, (runId) => readBranchSource(objects, runId));
    const problem = seenProblem(
      trainedBy,
      holdout.map((id) => ({ id })),
    );
    if (problem !== null) throw new BranchRefused(problem);
    return branch;
  } catch (error) {
    if (!(error instanceof BranchRefused)) throw error;
    problems.add('from', `--from ${from}: ${error.message}`);
    return null;
  }
}
