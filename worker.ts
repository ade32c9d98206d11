import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from '@temporalio/worker';
import { createEvaluationActivities } from './activities/evaluation.ts';
import { createInputActivities } from './activities/inputs.ts';
import { createMetricsActivities } from './activities/metrics.ts';
import { createMirrorActivities } from './activities/mirror.ts';
import { ModelAccess } from './activities/model-access.ts';
import { createPreflightActivities, createSandboxActivities } from './activities/preflight.ts';
import { createPromotionActivities } from './activities/promotion.ts';
import { createRolloutActivities } from './activities/rollouts.ts';
import { RunFolder } from './activities/run-folder.ts';
import { RunRecords } from './activities/run-records.ts';
import { createTeacherActivities } from './activities/teacher.ts';
import { createTrainingActivities, type TrainingDeps } from './activities/training.ts';
import { createWarmupActivities } from './activities/warm-up.ts';
import { createWarmupTrainingActivities } from './activities/warm-up-training.ts';
import { workMetrics } from './activities/work-metrics.ts';
import { servingEndpointOf } from './core/promotion/handoff.ts';
import { HarnessDocument } from './core/run/agents.ts';
import { BlobStore } from './services/blobs/blob-store.ts';
import { FileObjectStore } from './services/blobs/file-object-store.ts';
import { startGateway } from './services/gateway/index.ts';
import { HarborRunner, harborPython, makeScratchDir, scratchRoot } from './services/harbor/index.ts';
import { endWithParent } from './services/processes/index.ts';
import { type AppSettings, PROJECT_ROOT, type Role, readWorkerFlags } from './services/settings/index.ts';
import { GateBook } from './services/stores/gate-book.ts';
import { HarnessStore } from './services/stores/harness-store.ts';
import { VersionStore } from './services/stores/version-store.ts';
import { deploymentOf } from './services/temporal/deployment.ts';
import { drainOnSignals } from './services/temporal/draining.ts';
import { InFlight } from './services/temporal/in-flight.ts';
import { installRuntime } from './services/temporal/runtime.ts';
import { registerSearchAttributes } from './services/temporal/search-attributes.ts';
import { connectWorker } from './services/temporal/worker-connection.ts';
import { PAYLOAD_CONVERTER, workflowBundle } from './services/temporal/workflow-bundle.ts';
import { TinkerClient } from './services/tinker/index.ts';
import { SEARCH_ATTRIBUTES } from './workflows/search-attributes.ts';

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
  const { connection, namespace } = await connectWorker();
  await using cleanup = new AsyncDisposableStack();
  cleanup.defer(() => connection.close());
  if (roles.includes('control')) await registerSearchAttributes(connection, namespace, Object.values(SEARCH_ATTRIBUTES));

  const objects = new FileObjectStore(settings.blobStore);
  const blobs = new BlobStore(objects);
  const records = new RunRecords(blobs);
  const folderOf = (runDir: string) => new RunFolder(PROJECT_ROOT, runDir);
  const models = cleanup.use(new ModelAccess((onWait) => TinkerClient.connect({ tags: ['stillroom'], onWait })));
  const inFlight = new InFlight();
  const common = {
    connection,
    namespace,
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    interceptors: { activity: [inFlight.interceptor, workMetrics] },
    shutdownGraceTime: settings.workers.drainSeconds * 1000,
    ...deploymentOf(process.env),
  };
  const workers: Worker[] = [];

  if (roles.includes('control')) {
    const gates = new GateBook(join(stateDir, 'gates.jsonl'));
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.control,
        workflowBundle: await workflowBundle(PROJECT_ROOT, join(stateDir, 'cache')),
        maxCachedWorkflows: settings.workers.maxCachedWorkflows,
        stickyQueueScheduleToStartTimeout: '3s',
        maxConcurrentActivityTaskExecutions: settings.workers.controlSlots,
        activities: {
          ...createInputActivities({
            records,
            blobs,
            projectRoot: PROJECT_ROOT,
            settings,
            folderOf,
            harnesses: new HarnessStore(join(stateDir, 'harnesses'), HarnessDocument),
          }),
          ...createMetricsActivities({ records, blobs, folderOf }),
          ...createEvaluationActivities({ records, folderOf, countGate: (protocolHash, runId) => gates.note(protocolHash, runId) }),
          ...createWarmupActivities({ records, blobs, folderOf }),
          ...createMirrorActivities({ records, folderOf }),
          ...createPreflightActivities({ records, models }),
          ...createTeacherActivities({ records, blobs, models }),
          ...createPromotionActivities({
            records,
            folderOf,
            adapters: new VersionStore(join(stateDir, 'adapters'), 'adapter'),
            settingsPath: join(stateDir, 'settings.toml'),
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
    const deps = { records, blobs, models, gateway, harbor: harbor.get, trialsDir, projectRoot: PROJECT_ROOT };
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.rollouts,
        maxConcurrentActivityTaskExecutions: settings.workers.rolloutSlots,
        maxHeartbeatThrottleInterval: '2s',
        activities: { ...createRolloutActivities(deps), ...createSandboxActivities(deps) },
      }),
    );
  }

  if (roles.includes('training'))
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.training,
        maxConcurrentActivityTaskExecutions: settings.workers.trainingSlots,
        activities: {
          ...createTrainingActivities({ records, blobs, models, ...(alterAdvantages ? { alterAdvantages } : {}) }),
          ...createWarmupTrainingActivities({ records, blobs, models }),
        },
      }),
    );

  const owned = cleanup.move();
  const ended = Promise.all(workers.map((worker) => worker.run())).finally(() => owned.disposeAsync());
  return {
    ended,
    /** What runs now, for a person; empty when nothing does. */
    running: () => `${inFlight}`,
    /** Takes no new work, and hands over what has not ended when the drain time is over. */
    shutdown: () => {
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}

/** One harbor process for all trials of this worker, started with the first. */
function resident(stateDir: string) {
  let starting: Promise<HarborRunner> | null = null;
  const start = async () =>
    HarborRunner.start({
      python: await harborPython(PROJECT_ROOT),
      pluginDir: join(PROJECT_ROOT, 'harbor_plugin'),
      home: join(stateDir, 'harbor-home'),
    });
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
  const { roles, settings, stateDir, metrics } = readWorkerFlags(process.argv.slice(2));
  mkdirSync(stateDir, { recursive: true });
  installRuntime(metrics);
  const worker = await startWorker({ roles, settings, stateDir });
  const drain = drainOnSignals(
    { ...worker, drainSeconds: settings.workers.drainSeconds },
    { on: (signal, then) => process.on(signal, then), exit: process.exit, tell: (line) => console.error(line) },
  );
  endWithParent(() => drain('the process that started this worker is gone'));
  console.log(JSON.stringify({ ready: true, roles, pid: process.pid }));
  await worker.ended;
}

if (import.meta.main)
  main().then(
    () => process.exit(0),
    (error: Error & { exitCode?: number }) => {
      console.error(error.message);
      process.exit(error.exitCode ?? 1);
    },
  );
