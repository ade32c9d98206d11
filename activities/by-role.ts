import { join } from 'node:path';
import { cancellationSignal } from '@temporalio/activity';
import { servingEndpointOf } from '../core/promotion/handoff.ts';
import { StoredHarness } from '../core/run/harness-document.ts';
import type { BlobStore } from '../services/blobs/blob-store.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import type { TaskCache } from '../services/harbor/index.ts';
import { type AppSettings, PROJECT_ROOT } from '../services/settings/index.ts';
import { GateBook } from '../services/stores/gate-book.ts';
import { HarnessStore } from '../services/stores/harness-store.ts';
import { openShelf, type ShelfName } from '../services/stores/open-shelf.ts';
import { VersionStore } from '../services/stores/version-store.ts';
import { createBranchCheckActivities } from './branch-check.ts';
import { createCheckpointActivities } from './checkpoints.ts';
import { createCutOffActivities } from './cut-off.ts';
import { createEvaluationActivities } from './evaluation.ts';
import { createInputActivities } from './inputs.ts';
import { createKeptTrialsActivities } from './kept-trials.ts';
import { createMetricsActivities } from './metrics.ts';
import { createMirrorActivities } from './mirror.ts';
import type { ModelAccess } from './model-access.ts';
import { createPreflightActivities, createSandboxActivities } from './preflight.ts';
import { createPromotionActivities } from './promotion.ts';
import type { RendererOf } from './renderers.ts';
import { createRolloutActivities, type RolloutDeps } from './rollouts.ts';
import { runFiles } from './run-files.ts';
import type { RunRecords } from './run-records.ts';
import { createTeacherActivities } from './teacher.ts';
import { createTrainingActivities, type TrainingDeps } from './training.ts';
import { createWarmupActivities } from './warm-up.ts';
import { createWarmupTrainingActivities } from './warm-up-training.ts';

/** What the activities of every role share. */
export type SharedDeps = {
  readonly records: RunRecords;
  readonly blobs: BlobStore;
  readonly objects: ObjectStore;
  readonly models: ModelAccess;
  readonly rendererOf: RendererOf;
};

export type ControlDeps = SharedDeps & {
  readonly settings: AppSettings;
  /** Folder for what this project keeps. */
  readonly stateDir: string;
  readonly tasks: TaskCache;
};

/** Inputs, estimate, scores, rows, gate, promotion: what needs neither sandboxes nor weights that change. */
export function controlActivities({ settings, stateDir, tasks, ...shared }: ControlDeps) {
  const { objects } = shared;
  const gates = new GateBook(objects);
  const shelf = (name: ShelfName) => openShelf(name, stateDir, settings.blobStore, objects);
  const stored = { ...shared, folderOf: runFiles(objects, PROJECT_ROOT) };
  const harnesses = new HarnessStore(shelf('harnesses'), StoredHarness);
  return {
    ...createInputActivities({ ...shared, projectRoot: PROJECT_ROOT, settings, tasks, harnesses, cancelled: cancellationSignal }),
    ...createKeptTrialsActivities(shared),
    ...createCutOffActivities(shared),
    ...createMetricsActivities(stored),
    ...createEvaluationActivities({ ...stored, countGate: (protocolHash, runId) => gates.note(protocolHash, runId) }),
    ...createWarmupActivities(stored),
    ...createMirrorActivities(stored),
    ...createPreflightActivities(shared),
    ...createBranchCheckActivities(shared),
    ...createCheckpointActivities(shared),
    ...createTeacherActivities(shared),
    ...createPromotionActivities({
      ...stored,
      adapters: new VersionStore(shelf('adapters'), 'adapter'),
      settingsPath: join(stateDir, 'settings.toml'),
      ...(settings.blobStore.kind === 's3' ? { sharedSettings: objects } : {}),
      servingEndpoint: settings.servingEndpoint ?? servingEndpointOf(process.env.TINKER_BASE_URL),
    }),
  };
}

/** Trials, and what must run beside them. */
export const rolloutActivities = (deps: RolloutDeps) => ({ ...createRolloutActivities(deps), ...createSandboxActivities(deps) });

/** Calls that change weights. */
export const trainingActivities = (deps: TrainingDeps) => ({
  ...createTrainingActivities(deps),
  ...createWarmupTrainingActivities(deps),
});
