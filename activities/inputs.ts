import { join, relative } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import { estimateCost } from '../core/estimate/cost.ts';
import type { BlobRef } from '../core/ids.ts';
import { seedFromName } from '../core/random/seeded.ts';
import { AgentRefused, findAgent, type HarnessDocument } from '../core/run/agents.ts';
import { oversizedBatches, oversizedTaskLists } from '../core/run/batch-sizes.ts';
import type { PinnedAgent, PinnedRun } from '../core/run/pinned-run.ts';
import type { Estimate } from '../core/run/results.ts';
import type { StartInput } from '../core/run/start-input.ts';
import type { PinnedTask, TaskList } from '../core/run/trial.ts';
import { drawTasks, interimEvalTasks } from '../core/training/task-sampler.ts';
import { type BlobStore, runOfBlob } from '../services/blobs/blob-store.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { noteReads } from '../services/blobs/run-keys.ts';
import type { AppSettings } from '../services/settings/index.ts';
import type { HarnessStore } from '../services/stores/harness-store.ts';
import { StoreDamaged } from '../services/stores/version-index.ts';
import { StoreError } from '../services/stores/version-refs.ts';
import { importBaselines } from './baseline-import.ts';
import { branchNamed } from './branch-input.ts';
import { claimRun } from './claim-run.ts';
import { sha256 } from './digest.ts';
import { readConfig, readTaskIds } from './input-files.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';
import { readTaskList, refuseChanged, taskList } from './pinned-tasks.ts';
import { below, RunFolder, reallyBelow } from './run-folder.ts';
import { planOf, protocolOf, warningsFor } from './run-plan.ts';
import type { RunRecord, RunRecords } from './run-records.ts';
import { refuseOverlap, resolveTasks } from './splits.ts';
import { loadTrajectories } from './warm-up-input.ts';

export type ResolveOrder = { readonly runId: string; readonly executionId: string; readonly input: StartInput };

export type InputDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly projectRoot: string;
  readonly settings: Pick<AppSettings, 'runRoot' | 'taskQueues'>;
  readonly harnesses: HarnessStore<HarnessDocument>;
};
export type InputActivities = ReturnType<typeof createInputActivities>;

/** Run ids become folder names and parts of workflow ids. */
const RUN_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** What a failure in history says at most; a config can be wrong in more ways than a person reads. */
const MAX_MESSAGE_CHARS = 8_000;

export function createInputActivities({ records, blobs, objects, projectRoot, settings, harnesses }: InputDeps) {
  return {
    /**
     * Reads, checks and pins everything a run depends on; what it returns stays in history as the record.
     * Fails for good with `BadRunInput` when anything is wrong, before a run folder is made.
     */
    async resolveRun({ runId, executionId, input }: ResolveOrder): Promise<PinnedRun> {
      try {
        if (!RUN_ID.test(runId))
          throw new InputProblem('run id', `${JSON.stringify(runId)} must be letters, digits, dots, dashes and underscores, at most 100`);
        const record = await resolve({ runId, executionId, input }, { projectRoot, settings, harnesses, blobs, objects });
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

async function resolve(
  { runId, executionId, input }: ResolveOrder,
  { projectRoot, settings, harnesses, blobs, objects }: Omit<InputDeps, 'records'>,
): Promise<RunRecord> {
  if (input.backend === 'e2b') throw new InputProblem('backend', 'e2b sandboxes are not built yet: use local');
  const agent = await agentNamed(input.agent, harnesses);
  const config = await readConfig(projectRoot, input);
  const taskIds = await readTaskIds(projectRoot, input.taskIds, 'taskIds');
  const holdoutTaskIds = await readTaskIds(projectRoot, input.holdoutTaskIds, 'holdoutTaskIds');
  const ids = { taskIds: taskIds.ids, holdoutTaskIds: holdoutTaskIds.ids };
  const { jobTemplate, templateText, train, holdout } = await resolveTasks(projectRoot, config.parsed, ids);
  refuseOverlap(train, holdout);
  const from = await branchNamed(input.from, { runId, config: config.parsed, holdout, objects });
  const pin = ({ id, path, digest }: (typeof train)[number]): PinnedTask => ({ id, path, digest });
  const pinned = { train: train.map(pin), holdout: holdout.map(pin) };
  const oversized = [
    ...oversizedBatches(config.parsed, { train: train.length, holdout: holdout.length }),
    ...oversizedTaskLists(config.parsed, pinned),
  ];
  if (oversized.length > 0) throw new InputProblem('config', oversized.join('; '));
  const warmup = await loadTrajectories(projectRoot, config.parsed, { train, holdout }, blobs);
  const baselines = await importBaselines(projectRoot, config.parsed, holdoutTaskIds.ids);
  return {
    runId,
    executionId,
    runDir: input.runDir === undefined ? homeOf(runId, projectRoot, settings) : await chosenDir(projectRoot, input.runDir),
    trialPrefix: sha256(runId).slice(0, 8),
    agent,
    backend: config.parsed.harbor.backend,
    promote: input.promote ?? false,
    yes: input.yes ?? false,
    plan: planOf(config.parsed, settings.taskQueues),
    ...pinned,
    trainContents: train.map(({ contentDigest }) => contentDigest),
    branch: from?.branch ?? null,
    importedBaselines: baselines.evaluations,
    protocolHash: protocolOf(config.parsed, agent, holdout),
    warnings: [...warningsFor(config.parsed, jobTemplate, holdout.length), ...baselines.warnings, ...(from?.warnings ?? [])],
    fileHashes: {
      config: sha256(config.text),
      taskIds: sha256(taskIds.text),
      holdoutTaskIds: sha256(holdoutTaskIds.text),
      jobTemplate: sha256(templateText),
      ...baselines.fileHashes,
      ...(warmup ? { warmupTrajectories: warmup.fileHash } : {}),
    },
    config: config.parsed,
    jobTemplate,
    warmupTrajectories: warmup?.document ?? null,
  };
}

/** Earlier runs whose blobs this run reads, and the one it starts from: what its weights are made of is kept there. Baselines that it imports are in its own record. */
function runsReadBy({ warmupTrajectories, branch }: RunRecord): Set<string> {
  const spans = warmupTrajectories?.trials.flatMap(({ spans }) => (spans === null ? [] : [spans])) ?? [];
  return new Set([...spans.map(runOfBlob), ...(branch?.source ? [branch.source.runId] : [])]);
}

/** Folders are named relative to the project root: workers on other machines have another one. */
function homeOf(runId: string, projectRoot: string, { runRoot }: InputDeps['settings']): string {
  return relative(projectRoot, below(projectRoot, join(runRoot, runId), 'runRoot of the app settings'));
}

async function chosenDir(projectRoot: string, runDir: string): Promise<string> {
  try {
    return relative(projectRoot, await reallyBelow(projectRoot, runDir, 'runDir'));
  } catch (error) {
    throw asInputProblem(error, 'runDir', runDir);
  }
}

function shortened(message: string): string {
  const more = message.length - MAX_MESSAGE_CHARS;
  return more <= 0 ? message : `${message.slice(0, MAX_MESSAGE_CHARS)} … and ${more} characters more`;
}

async function agentNamed(given: string, harnesses: HarnessStore<HarnessDocument>): Promise<PinnedAgent> {
  try {
    const { ref, ...agent } = await findAgent(given, (name, ref) => harnesses.load(name, ref));
    const { name, importPath, kwargs } = agent;
    return { ...agent, ref, hash: sha256(JSON.stringify({ name, importPath, kwargs })) };
  } catch (error) {
    if (error instanceof AgentRefused || error instanceof StoreError || error instanceof StoreDamaged)
      throw new InputProblem('agent', error.message);
    throw error;
  }
}
