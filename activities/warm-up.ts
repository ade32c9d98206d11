import { ApplicationFailure } from '@temporalio/common';
import type { RunConfig } from '../core/config/index.ts';
import type { BlobRef } from '../core/ids.ts';
import { spendOf } from '../core/measures/spend.ts';
import { addPaid } from '../core/measures/usage.ts';
import type { KeptTrials } from '../core/run/kept-trials.ts';
import {
  TRAJECTORY_FILE,
  type TrajectoryDocument,
  TrajectoryList,
  trajectoriesIn,
  trajectoryDocument,
} from '../core/run/trajectory-file.ts';
import type { TrialSummary } from '../core/run/trial.ts';
import type { CollectedTrajectories, Trajectory, WarmupRow, WarmupSet } from '../core/run/warm-up.ts';
import { TokenError } from '../core/tokens/token-error.ts';
import { drawWarmupBatch } from '../core/training/warm-up.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import { getJson, putJson } from '../services/blobs/json.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { readTrials } from './kept-trials.ts';
import type { RunFiles, RunPlace } from './run-files.ts';
import type { RunRecord, RunRecords } from './run-records.ts';
import { sweepBatch } from './sweep-calls.ts';
import { teacherIdentity } from './warm-up-input.ts';
import { type BuiltSet, buildWarmupSet, NothingToWarmUpOn } from './warm-up-set.ts';

export type WarmupDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly folderOf: (run: RunPlace) => RunFiles;
};
export type KeepOrder = { readonly run: BlobRef; readonly trials: KeptTrials; readonly areAll: boolean };
export type WarmupActivities = ReturnType<typeof createWarmupActivities>;

export function createWarmupActivities({ records, blobs, objects, folderOf }: WarmupDeps) {
  return {
    /** Keeps what the teacher played: as a blob for this run, as a file in its folder for later ones. Books are needed until these `areAll`. */
    async keepTrajectories({ run, trials, areAll }: KeepOrder): Promise<CollectedTrajectories> {
      const record = await records.load(run);
      const played = (await readTrials(trials, blobs)).map(({ trial }) => trial);
      const trajectories = played.map(trajectoryOf);
      await folderOf(record).writeJson(TRAJECTORY_FILE, documentOf(record, trajectories));
      const list = await putJson(blobs.of(record.runId), trajectories);
      const ids = trajectories.map(({ trialId }) => trialId);
      if (areAll) await sweepBatch(objects, record.runId, ids);
      return { list, ...addPaid(...played) };
    },

    /** Makes training sequences of the trajectories in `list`, or of those that were loaded when the run was resolved. Fails with `NothingToWarmUpOn` when there are none. */
    async gatherWarmup({ run, list }: { run: BlobRef; list: BlobRef | null }): Promise<WarmupSet> {
      const record = await records.load(run);
      const { config, runDir, warmupTrajectories: loaded } = record;
      if (loaded) await folderOf(record).writeJson(TRAJECTORY_FILE, loaded);
      const trajectories = loaded ? trajectoriesIn(loaded) : await listed(list, blobs);
      try {
        const built = await buildWarmupSet(trajectories, config, blobs);
        return {
          ref: await putJson(blobs.of(record.runId), built.index),
          datums: built.datums,
          updateUsd: updateUsd(built, config),
          notice: told(built, trajectories.length, record),
        };
      } catch (error) {
        if (error instanceof TokenError) throw ApplicationFailure.nonRetryable(error.message, error.name);
        if (!(error instanceof NothingToWarmUpOn)) throw error;
        const message = `the warm-up has nothing to train on: ${error.message}. What was played is kept: warmup.trajectories_from = "${runDir}" uses it again`;
        throw ApplicationFailure.nonRetryable(message, error.name);
      }
    },

    /** Places, in the warm-up's set, of the sequences of one update (from 1). */
    async drawWarmup({ run, datums, update }: { run: BlobRef; datums: number; update: number }): Promise<readonly number[]> {
      const { config, runId } = await records.load(run);
      return drawWarmupBatch({ datums, batchSize: batchSize(config), update, runName: runId });
    },

    /** Keeps the row of an update, and brings `warmup.jsonl` up to date. */
    async noteWarmup({ run, row }: { run: BlobRef; row: WarmupRow }): Promise<void> {
      await folderOf(await records.load(run)).keepRow('warmup-rows', row.update, row, async () => row);
    },
  };
}

/** The part of a trial that a warm-up needs. */
function trajectoryOf({ trialId, taskId, passed, executed, sampledTokens, spans }: TrialSummary): Trajectory {
  return { trialId, taskId, passed, executed, sampledTokens, spans };
}

/** As many sequences as a training step has trials. */
const batchSize = ({ train }: RunConfig) => train.tasks_per_batch * train.group_size;

function updateUsd({ datums, lossTokens, contextTokens }: BuiltSet, config: RunConfig): number {
  const tokensPerDatum = (lossTokens + contextTokens) / datums;
  return spendOf(config.pricing, { student_train: Math.ceil(tokensPerDatum * Math.min(batchSize(config), datums)) }).usd;
}

function told(built: BuiltSet, trials: number, { config, agent, warmupTrajectories: loaded }: RunRecord): string {
  const dropped = [
    [built.overflowDrops, 'episodes over the context budget'],
    [built.overlongDrops, 'episodes over train.max_datum_tokens'],
    [built.firstTokenDrops, 'sequences that begin with a sampled token'],
    [built.maskedTokens, 'tokens without a usable log-probability'],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]));
  const player = loaded && loaded.agent.hash !== agent.hash ? ` (played by another agent: ${loaded.agent.name}@${loaded.agent.ref})` : '';
  const from = loaded ? ` from ${config.warmup.trajectories_from}${player}` : '';
  return `warm-up on ${built.datums} sequences of ${built.kept} of the teacher's ${trials} trials${from}${dropped.length > 0 ? `; left out: ${dropped.join(', ')}` : ''}`;
}

function documentOf({ runId, agent, train, config }: RunRecord, trajectories: readonly Trajectory[]): TrajectoryDocument {
  const { name, ref, hash } = agent;
  const source = {
    run_id: runId,
    teacher: teacherIdentity(config),
    student_base_model: config.student.base_model,
    agent: { name, ref, hash },
  };
  return trajectoryDocument({ ...source, train }, trajectories);
}

async function listed(list: BlobRef | null, blobs: BlobStore): Promise<readonly Trajectory[]> {
  if (list === null) throw ApplicationFailure.nonRetryable('no trajectories were pinned with this run', 'WarmupUnpinned');
  return getJson(blobs, list, TrajectoryList);
}
