import { existsSync, mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { beatAlways } from './activities/beating.ts';
import { createCheckpointActivities } from './activities/checkpoints.ts';
import { createEvaluationActivities } from './activities/evaluation.ts';
import { createInputActivities } from './activities/inputs.ts';
import { createKeepTrainingActivities } from './activities/keep-training.ts';
import { createKeptTrialsActivities } from './activities/kept-trials.ts';
import { createMetricsActivities } from './activities/metrics.ts';
import { createMirrorActivities } from './activities/mirror.ts';
import { type Connect, ModelAccess } from './activities/model-access.ts';
import { createPreflightActivities, createSandboxActivities } from './activities/preflight.ts';
import { createPromotionActivities } from './activities/promotion.ts';
import { createRolloutActivities } from './activities/rollouts.ts';
import { runFiles } from './activities/run-files.ts';
import { RunRecords } from './activities/run-records.ts';
import { createTeacherActivities } from './activities/teacher.ts';
import { createTrainingActivities, type TrainingDeps } from './activities/training.ts';
import { createWarmupActivities } from './activities/warm-up.ts';
import { createWarmupTrainingActivities } from './activities/warm-up-training.ts';
import { servingEndpointOf } from './core/promotion/handoff.ts';
import { HarnessDocument } from './core/run/agents.ts';
import { keepQueueOf } from './core/training/keep-queue.ts';
import { BlobStore } from './services/blobs/blob-store.ts';
import { openObjectStore } from './services/blobs/open.ts';
import { startGateway } from './services/gateway/index.ts';
import { HarborRunner, harborPython, makeScratchDir, scratchRoot, sweepSandboxes } from './services/harbor/index.ts';
import { endWithParent } from './services/processes/index.ts';
import { type AppSettings, PROJECT_ROOT, readAppSettings } from './services/settings/index.ts';
import { GateBook } from './services/stores/gate-book.ts';
import { HarnessStore } from './services/stores/harness-store.ts';
import { openShelf, type ShelfName } from './services/stores/open-shelf.ts';
import { VersionStore } from './services/stores/version-store.ts';
import { guardResults } from './services/temporal/activity-guards.ts';
import { registerSearchAttributes } from './services/temporal/search-attributes.ts';
import { PAYLOAD_CONVERTER, workflowBundle } from './services/temporal/workflow-bundle.ts';
import { TinkerClient } from './services/tinker/index.ts';
import { SEARCH_ATTRIBUTES } from './workflows/search-attributes.ts';

/** How long a worker that is told to end waits for calls that are paid for; who started it must give it a few seconds more. */
const GRACE = '8s';

/** Keeping a training alive costs a request every ten seconds, and must never wait for a slot. */
const MOST_KEPT_TRAININGS = 1000;

/** What a worker process can do; each role has its own task queue. */
export const ROLES = ['control', 'rollouts', 'training'] as const;
export type Role = (typeof ROLES)[number];

export type WorkerOptions = {
  readonly roles: readonly Role[];
  readonly settings: AppSettings;
  /** Folder for what this project keeps: adapters, settings, caches, trial folders. */
  readonly stateDir: string;
  /** For negative controls only, see `TrainingDeps`. */
  readonly alterAdvantages?: TrainingDeps['alterAdvantages'];
};

/** Connects, builds the services that the roles need, and polls until `shutdown` is called. */
export async function startWorker({ roles, settings, stateDir, alterAdvantages }: WorkerOptions) {
  const { connectionOptions, namespace = 'default' } = loadClientConnectConfig();
  const connection = await NativeConnection.connect(connectionOptions);
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => connection.close());
  if (roles.includes('control')) await registerSearchAttributes(connection, namespace, Object.values(SEARCH_ATTRIBUTES));

  const objects = await openObjectStore(settings);
  const blobs = new BlobStore(objects);
  const records = new RunRecords(blobs);
  const folderOf = runFiles(objects, PROJECT_ROOT);
  const models = cleanup.use(new ModelAccess(connectTinker));
  const common = {
    connection,
    namespace,
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    interceptors: { activity: [guardResults, beatAlways] },
    // Beats that come too seldom make a busy worker look dead.
    maxHeartbeatThrottleInterval: '2s',
  };
  const workers: Worker[] = [];
  const draining = new AbortController();

  if (roles.includes('control')) {
    const gates = new GateBook(objects);
    const shelf = (name: ShelfName) => openShelf(name, stateDir, settings.blobStore, objects);
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.control,
        workflowBundle: await workflowBundle(PROJECT_ROOT, join(stateDir, 'cache')),
        maxCachedWorkflows: settings.workers.maxCachedWorkflows,
        stickyQueueScheduleToStartTimeout: '3s',
        maxConcurrentActivityTaskExecutions: settings.workers.controlSlots,
        shutdownGraceTime: GRACE,
        activities: {
          ...createInputActivities({
            records,
            blobs,
            objects,
            projectRoot: PROJECT_ROOT,
            settings,
            harnesses: new HarnessStore(shelf('harnesses'), HarnessDocument),
          }),
          ...createKeptTrialsActivities({ records, blobs }),
          ...createMetricsActivities({ records, blobs, objects, folderOf }),
          ...createEvaluationActivities({
            records,
            blobs,
            objects,
            folderOf,
            countGate: (protocolHash, runId) => gates.note(protocolHash, runId),
          }),
          ...createWarmupActivities({ records, blobs, objects, folderOf }),
          ...createMirrorActivities({ records, objects, folderOf }),
          ...createPreflightActivities({ records, objects, models }),
          ...createCheckpointActivities({ models }),
          ...createTeacherActivities({ records, blobs, objects, models }),
          ...createPromotionActivities({
            records,
            folderOf,
            adapters: new VersionStore(shelf('adapters'), 'adapter'),
            settingsPath: join(stateDir, 'settings.toml'),
            ...(settings.blobStore.kind === 's3' ? { sharedSettings: objects } : {}),
            servingEndpoint: settings.servingEndpoint ?? servingEndpointOf(process.env.TINKER_BASE_URL),
          }),
        },
      }),
    );
  }

  if (roles.includes('rollouts')) {
    const trialsDir = await makeScratchDir(await scratchRoot());
    cleanup.defer(() => rm(trialsDir, { recursive: true, force: true }));
    const gateway = cleanup.use(await startGateway(settings.gateway));
    const harbor = resident(stateDir);
    cleanup.defer(async () => (await harbor.started())?.close());
    const deps = {
      records,
      blobs,
      objects,
      models,
      gateway,
      harbor: harbor.get,
      trialsDir,
      projectRoot: PROJECT_ROOT,
      drain: draining.signal,
    };
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.rollouts,
        maxConcurrentActivityTaskExecutions: settings.workers.rolloutSlots,
        shutdownGraceTime: GRACE,
        activities: { ...createRolloutActivities(deps), ...createSandboxActivities(deps) },
      }),
    );
  }

  if (roles.includes('training')) {
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.training,
        maxConcurrentActivityTaskExecutions: settings.workers.trainingSlots,
        shutdownGraceTime: '2s',
        activities: {
          ...createTrainingActivities({ records, blobs, objects, models, ...(alterAdvantages ? { alterAdvantages } : {}) }),
          ...createWarmupTrainingActivities({ records, blobs, objects, models }),
        },
      }),
      await Worker.create({
        ...common,
        taskQueue: keepQueueOf(settings.taskQueues.training),
        maxConcurrentActivityTaskExecutions: MOST_KEPT_TRAININGS,
        shutdownGraceTime: '2s',
        activities: createKeepTrainingActivities({ records, objects, models }),
      }),
    );
  }

  const owned = cleanup.move();
  const ended = Promise.all(workers.map((worker) => worker.run())).finally(() => owned.disposeAsync());
  return {
    ended,
    shutdown: () => {
      draining.abort();
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}

const connectTinker: Connect = (onWait, sessionId) =>
  sessionId === undefined ? TinkerClient.connect({ tags: ['stillroom'], onWait }) : TinkerClient.attach({ sessionId, onWait });

/** One harbor process for all trials of this worker, started with the first. What dead ones left on this machine goes at once. */
function resident(stateDir: string) {
  let starting: Promise<HarborRunner> | null = null;
  const options = async () => ({
    python: await harborPython(PROJECT_ROOT),
    pluginDir: join(PROJECT_ROOT, 'harbor_plugin'),
    home: join(stateDir, 'harbor-home'),
  });
  const start = async () => HarborRunner.start(await options());
  options().then(sweepSandboxes, () => {}); // without a Python the first trial says so
  return {
    get: () => {
      starting ??= start().catch((error) => {
        starting = null;
        throw error;
      });
      return starting;
    },
    started: async () => starting?.catch(() => null) ?? null,
  };
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { roles: { type: 'string' }, state: { type: 'string' } } });
  const roles = rolesIn(values.roles ?? ROLES.join(','));
  const stateDir = values.state ?? join(PROJECT_ROOT, '.stillroom');
  if (!existsSync(stateDir)) mkdirSync(stateDir, { recursive: true });
  Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: [] });
  const worker = await startWorker({ roles, settings: readAppSettings(), stateDir });
  endWithParent(worker.shutdown);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, worker.shutdown);
  console.log(JSON.stringify({ ready: true, roles, pid: process.pid }));
  await worker.ended;
}

function rolesIn(text: string): Role[] {
  return text.split(',').map((name) => {
    const role = ROLES.find((role) => role === name.trim());
    if (!role) throw new Error(`--roles: ${JSON.stringify(name)} is none of ${ROLES.join(', ')}`);
    return role;
  });
}

if (import.meta.main)
  main().then(
    () => process.exit(0),
    (error: Error & { exitCode?: number }) => {
      console.error(error.message);
      process.exit(error.exitCode ?? 1);
    },
  );
