import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { TrialCrashed } from './errors.ts';
import type { TrialFiles } from './trial-result.ts';

/** A task's own tests write the report, so its size is theirs to choose; a larger one is no report. */
const MAX_REPORT_BYTES = 16 * 1024 * 1024;

/** Reads what a finished trial left in its folder. @throws TrialCrashed when there is no result. */
export async function readTrialFiles(trialDir: string): Promise<TrialFiles> {
  const result = await readFile(join(trialDir, 'result.json'), 'utf8').catch((error: Error) => {
    throw new TrialCrashed(`the trial left no result: ${error.message}`);
  });
  const [testReport, trajectory, rewardFile] = await Promise.all([
    readReport(join(trialDir, 'verifier/ctrf.json')),
    readReport(join(trialDir, 'agent/trajectory.json')),
    firstThere(trialDir, REWARD_FILES),
  ]);
  return { result, testReport, trajectory, rewardFile };
}

/** Files in which a grader leaves its reward, in the order in which harbor looks for them. */
const REWARD_FILES = ['verifier/reward.json', 'verifier/reward.txt'];

async function firstThere(trialDir: string, paths: readonly string[]): Promise<string | null> {
  const found = await Promise.all(paths.map((path) => stat(join(trialDir, path)).catch(() => null)));
  return paths.find((_, place) => found[place]?.isFile()) ?? null;
}

/** Null when there is none, or none of use. */
async function readReport(path: string): Promise<string | null> {
  const found = await stat(path).catch(() => null);
  return found?.isFile() && found.size <= MAX_REPORT_BYTES ? readFile(path, 'utf8').catch(() => null) : null;
}
