import { ApplicationFailure } from '@temporalio/common';
import { estimateCost } from '../core/estimate/cost.ts';
import type { BlobRef } from '../core/ids.ts';
import { seedFromName } from '../core/random/seeded.ts';
import type { PinnedRun } from '../core/run/pinned-run.ts';
import type { Estimate } from '../core/run/results.ts';
import { runIdProblem } from '../core/run/run-id.ts';
import type { PinnedTask, TaskList } from '../core/run/trial.ts';
import { drawTasks, interimEvalTasks } from '../core/training/task-sampler.ts';
import { runOfBlob } from '../services/blobs/blob-store.ts';
import { noteReads } from '../services/blobs/run-keys.ts';
import { claimRun } from './claim-run.ts';
import { InputProblem } from './input-problem.ts';
import { readTaskList, refuseChanged, taskList } from './pinned-tasks.ts';
import { homeOf, type ResolveDeps, type ResolveOrder, resolveInput } from './resolve-input.ts';
import { RunFolder } from './run-folder.ts';
import type { RunRecord, RunRecords } from './run-records.ts';

export type InputDeps = ResolveDeps & { readonly records: RunRecords };
export type InputActivities = ReturnType<typeof createInputActivities>;

/** What a failure in history says at most; a config can be wrong in more ways than a person reads. */
const MAX_MESSAGE_CHARS = 8_000;

export function createInputActivities({ records, blobs, objects, projectRoot, settings, tasks: cache, harnesses, cancelled }: InputDeps) {
  return {
    /**
     * Reads, checks and pins everything a run depends on; what it returns stays in history as the record.
     * Fails for good with `BadRunInput` when anything is wrong, before a run folder is made.
     */
    async resolveRun({ runId, executionId, input }: ResolveOrder): Promise<PinnedRun> {
      try {
        const problem = runIdProblem(runId);
        if (problem !== null) throw new InputProblem('run id', `${JSON.stringify(runId)}: ${problem}`);
        const record = await resolveInput(
          { runId, executionId, input },
          {
            projectRoot,
            settings,
            tasks: cache,
            harnesses,
            blobs,
            objects,
            ...(cancelled ? { cancelled } : {}),
          },
        );
        const home = new RunFolder(projectRoot, homeOf(runId, projectRoot, settings));
        await claimRun({ objects, home, folder: new RunFolder(projectRoot, record.runDir) }, record);
        await noteReads(objects, runId, runsReadBy(record));
        const { config, jobTemplate, warmupTrajectories, executionId: _, train, holdout, trainContents, ...pinned } = record;
        const lists = { train: await taskList(train, blobs, runId), holdout: await taskList(holdout, blobs, runId) };
        return { ...pinned, ...lists, ref: await records.pin(record) };
      } catch (error) {
        if (error instanceof InputProblem) throw ApplicationFailure.nonRetryable(shortened(error.message), 'BadRunInput');
        throw error;
      }
    },

    /** Tokens, prices and USD by meter, before anything is spent. */
    async estimateRun({ run }: { run: BlobRef }): Promise<Estimate> {
      const { config, train, holdout } = await records.load(run);
      return estimateCost(config, { nTrain: train.length, nHoldout: holdout.length });
    },

    /** The tasks of one step (from 1): a seeded permutation of the training split per epoch. */
    async drawStepTasks({ run, step }: { run: BlobRef; step: number }): Promise<readonly PinnedTask[]> {
      const { train, config, runId } = await records.load(run);
      const byId = new Map(train.map((task) => [task.id, task]));
      const ids = drawTasks({
        taskIds: [...byId.keys()],
        tasksPerBatch: config.train.tasks_per_batch,
        step: step - 1,
        seed: seedFromName(runId),
      });
      const drawn = ids.map((id) => byId.get(id) as PinnedTask);
      await refuseChanged(projectRoot, drawn);
      return drawn;
    },

    /** The training tasks of the run's interim evaluations: a seeded choice, the same for all of them. Never held-out ones. */
    async drawInterimTasks({ run }: { run: BlobRef }): Promise<TaskList> {
      const { train, config, runId } = await records.load(run);
      const byId = new Map(train.map((task) => [task.id, task]));
      const ids = interimEvalTasks([...byId.keys()], config.eval.tasks, seedFromName(`${runId} interim`));
      return taskList(
        ids.map((id) => byId.get(id) as PinnedTask),
        blobs,
        runId,
      );
    },

    /** The tasks of a list. Fails as `checkTasks` does. */
    async listTasks({ tasks }: { tasks: TaskList }): Promise<readonly PinnedTask[]> {
      const listed = await readTaskList(tasks, blobs);
      await refuseChanged(projectRoot, listed);
      return listed;
    },

    /** Fails with `TaskChanged` when a task or its grader is no longer what the run pinned. */
    async checkTasks({ tasks }: { tasks: TaskList }): Promise<void> {
      await refuseChanged(projectRoot, await readTaskList(tasks, blobs));
    },
  };
}

/** Earlier runs whose blobs this run reads, and the one it starts from: what its weights are made of is kept there. Baselines that it imports are in its own record. */
function runsReadBy({ warmupTrajectories, branch }: RunRecord): Set<string> {
  const spans = warmupTrajectories?.trials.flatMap(({ spans }) => (spans === null ? [] : [spans])) ?? [];
  return new Set([...spans.map(runOfBlob), ...(branch?.source ? [branch.source.runId] : [])]);
}

function shortened(message: string): string {
  const more = message.length - MAX_MESSAGE_CHARS;
  return more <= 0 ? message : `${message.slice(0, MAX_MESSAGE_CHARS)} … and ${more} characters more`;
}
