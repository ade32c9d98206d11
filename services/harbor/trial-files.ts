import { TrialCrashed } from './errors.ts';
import type { TrialFiles } from './trial-result.ts';
import { readInside } from './walk.ts';

/** A long trial's result holds its tokens, one number a line. */
const MAX_RESULT_BYTES = 256 * 2 ** 20;
/** A task's own tests write the report, so its size is theirs to choose; a larger one is no report. */
const MAX_REPORT_BYTES = 16 * 2 ** 20;

/** Reads what a finished trial left in its folder. No link is followed: its programs may have made them. @throws TrialCrashed when there is no result. */
export async function readTrialFiles(trialDir: string): Promise<TrialFiles> {
  const result = await readInside(trialDir, 'result.json', MAX_RESULT_BYTES);
  if (result === null) throw new TrialCrashed('the trial left no result: there is no result.json, or none that can be read');
  const [testReport, trajectory, ...rewards] = await Promise.all(
    ['verifier/ctrf.json', 'agent/trajectory.json', ...REWARD_FILES].map((path) => readInside(trialDir, path, MAX_REPORT_BYTES)),
  );
  const rewardFile = REWARD_FILES.find((_, place) => (rewards[place] ?? null) !== null) ?? null;
  return { result: `${result}`, testReport: testReport?.toString() ?? null, trajectory: trajectory?.toString() ?? null, rewardFile };
}

/** Files in which a grader leaves its reward, in the order in which harbor looks for them. */
const REWARD_FILES = ['verifier/reward.json', 'verifier/reward.txt'];
