import { type ConfigError, type RunConfig, startProblems } from '../../core/config/index.ts';
import { type CostEstimate, estimateCost, type SplitSizes } from '../../core/estimate/index.ts';
import { Problems } from './problems.ts';
import { type RunFiles, readConfigFile, readSplits } from './run-files.ts';

/** What a run from these files would cost, and why `start` would refuse it all the same. */
export type FilesEstimate = {
  readonly config: RunConfig;
  readonly sizes: SplitSizes;
  readonly estimate: CostEstimate;
  /** Keys that `start` refuses; what is not built is in the estimate as if it were. */
  readonly refusals: readonly ConfigError[];
};

/**
 * Estimates a run from its config and splits alone: neither the job template nor any task folder is looked at, nothing is written and
 * nothing outside of these three files is reached.
 * @throws InputRefused with all that is wrong with them, as `start` tells it.
 */
export async function estimateFiles(files: RunFiles): Promise<FilesEstimate> {
  const problems = new Problems();
  const { config } = await readConfigFile(files, problems);
  const { train, holdout } = await readSplits(files, problems);
  problems.throwIfAny();
  if (!config || !train || !holdout) throw new Error('what has no problem was read');
  const sizes = { nTrain: train.length, nHoldout: holdout.length };
  return { config, sizes, estimate: estimateCost(config, sizes), refusals: startProblems(config) };
}
