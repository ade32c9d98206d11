import { join, relative } from 'node:path';
import { agentMisfit, agentWarnings } from '../core/run/agent-fits.ts';
import { programText } from '../core/run/agent-program.ts';
import { AgentRefused, findAgent } from '../core/run/agents.ts';
import { oversizedBatches, oversizedTaskLists } from '../core/run/batch-sizes.ts';
import type { StoredHarness } from '../core/run/harness-document.ts';
import type { PinnedAgent } from '../core/run/pinned-run.ts';
import type { StartInput } from '../core/run/start-input.ts';
import type { PinnedTask } from '../core/run/trial.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { TaskCache } from '../services/harbor/index.ts';
import type { AppSettings } from '../services/settings/index.ts';
import type { HarnessStore } from '../services/stores/harness-store.ts';
import { StoreDamaged } from '../services/stores/version-index.ts';
import { StoreError } from '../services/stores/version-refs.ts';
import { importBaselines } from './baseline-import.ts';
import { branchNamed } from './branch-input.ts';
import { sha256 } from './digest.ts';
import { readConfig, readTaskIds } from './input-files.ts';
import { asInputProblem, InputProblem } from './input-problem.ts';
import { below, reallyBelow } from './run-folder.ts';
import { planOf, protocolOf, warningsFor } from './run-plan.ts';
import type { RunRecord } from './run-records.ts';
import { refuseOverlap, resolveTasks } from './splits.ts';
import { loadTrajectories } from './warm-up-input.ts';

export type ResolveOrder = { readonly runId: string; readonly executionId: string; readonly input: StartInput };

export type ResolveDeps = {
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly projectRoot: string;
  readonly settings: Pick<AppSettings, 'runRoot' | 'taskQueues'>;
  readonly tasks: TaskCache;
  /** Ends a fetch of tasks that nobody waits for any more. */
  readonly cancelled?: () => AbortSignal;
  readonly harnesses: HarnessStore<StoredHarness>;
};

/** Everything that a run depends on, read and checked. @throws InputProblem */
export async function resolveInput(
  { runId, executionId, input }: ResolveOrder,
  { projectRoot, settings, tasks, harnesses, blobs, objects, cancelled }: ResolveDeps,
): Promise<RunRecord> {
  if (input.backend === 'e2b') throw new InputProblem('backend', 'e2b sandboxes are not built yet: use local');
  const agent = await agentNamed(input.agent, harnesses);
  const config = await readConfig(projectRoot, input);
  const misfit = agentMisfit(agent, config.parsed);
  if (misfit !== null) throw new InputProblem('agent', misfit);
  const taskIds = await readTaskIds(projectRoot, input.taskIds, 'taskIds');
  const holdoutTaskIds = await readTaskIds(projectRoot, input.holdoutTaskIds, 'holdoutTaskIds');
  const ids = { taskIds: taskIds.ids, holdoutTaskIds: holdoutTaskIds.ids };
  const { jobTemplate, templateText, train, holdout } = await resolveTasks(config.parsed, ids, {
    projectRoot,
    tasks,
    signal: cancelled?.(),
  });
  refuseOverlap(train, holdout);
  const from = await branchNamed(input.from, { runId, config: config.parsed, holdout, objects });
  const pin = ({ contentDigest: _, ...task }: (typeof train)[number]): PinnedTask => task;
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
    warnings: [
      ...agentWarnings(agent, config.parsed),
      ...warningsFor(config.parsed, jobTemplate, holdout.length),
      ...baselines.warnings,
      ...(from?.warnings ?? []),
    ],
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

/** Folders are named relative to the project root: workers on other machines have another one. */
export function homeOf(runId: string, projectRoot: string, { runRoot }: ResolveDeps['settings']): string {
  return relative(projectRoot, below(projectRoot, join(runRoot, runId), 'runRoot of the app settings'));
}

async function chosenDir(projectRoot: string, runDir: string): Promise<string> {
  try {
    return relative(projectRoot, await reallyBelow(projectRoot, runDir, 'runDir'));
  } catch (error) {
    throw asInputProblem(error, 'runDir', runDir);
  }
}

async function agentNamed(given: string, harnesses: HarnessStore<StoredHarness>): Promise<PinnedAgent> {
  try {
    const agent = await findAgent(given, (name, ref) => harnesses.load(name, ref));
    return { ...agent, hash: sha256(programText(agent)) };
  } catch (error) {
    if (error instanceof AgentRefused || error instanceof StoreError || error instanceof StoreDamaged)
      throw new InputProblem('agent', error.message);
    throw error;
  }
}
