import { join } from 'node:path';
import type { BlobRef } from '../core/ids.ts';
import type { TrialSummary } from '../core/run/trial.ts';
import { keepTrialFiles } from '../services/blobs/trial-files.ts';
import { packTrial } from '../services/harbor/index.ts';
import type { Attempt, RolloutDeps } from './rollouts.ts';

type Left = Pick<Attempt, 'record' | 'spec' | 'name' | 'trialsDir' | 'session'>;

/** Packs what a trial left in its folder, if the run keeps that of such trials: `failed` means those that did not pass, for whatever reason. */
export async function keepFiles(left: Left, summary: TrialSummary, deps: RolloutDeps): Promise<BlobRef | null> {
  const { record, spec, name, trialsDir, session } = left;
  const { keep_files: kept } = record.config.harbor;
  if (kept === 'none' || (kept !== 'all' && summary.passed)) return null;
  const packed = await packTrial(join(trialsDir, name), [session.apiKey, ...deps.runnerSecrets]);
  const { trialId, taskId, reward, executed, exceptionType, exceptionMessage, stopReason } = summary;
  const about = { trialId, taskId, reward, executed, exceptionType, exceptionMessage, stopReason, who: spec.who };
  return packed && keepTrialFiles(deps, record.runId, packed, about);
}
