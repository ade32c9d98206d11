import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from '@temporalio/worker';
import { beatAlways } from './activities/beating.ts';
import { controlActivities, rolloutActivities, trainingActivities } from './activities/by-role.ts';
import { createKeepTrainingActivities } from './activities/keep-training.ts';
import { type Connect, ModelAccess } from './activities/model-access.ts';
import { Renderers } from './activities/renderers.ts';
import { RunRecords } from './activities/run-records.ts';
import type { TrainingDeps } from './activities/training.ts';
import { workMetrics } from './activities/work-metrics.ts';
import { keepQueueOf } from './core/training/keep-queue.ts';
import { BlobStore } from './services/blobs/blob-store.ts';
import { openObjectStore } from './services/blobs/open.ts';
import { startGateway } from './services/gateway/index.ts';
import { residentRunner, TaskCache, TrialFolders, TrialMemory } from './services/harbor/index.ts';
import { hubAccess, ModelFiles } from './services/hub/index.ts';
import { death, endWithParent } from './services/processes/index.ts';
import { type AppSettings, cannotListen, PROJECT_ROOT, type Role, readWorkerFlags, runnerVariables } from './services/settings/index.ts';
import { guardResults } from './services/temporal/activity-guards.ts';
import { deploymentOf } from './services/temporal/deployment.ts';
import { drainOnSignals } from './services/temporal/draining.ts';
import { InFlight } from './services/temporal/in-flight.ts';
import { installRuntime } from './services/temporal/runtime.ts';
import { registerSearchAttributes } from './services/temporal/search-attributes.ts';
import { connectWorker } from './services/temporal/worker-connection.ts';
import { PAYLOAD_CONVERTER, workflowBundle } from './services/temporal/workflow-bundle.ts';
import { requireSettings, TinkerClient } from './services/tinker/index.ts';
import { SEARCH_ATTRIBUTES } from './workflows/search-attributes.ts';

/** Keeping a training alive costs a request every ten seconds, and must never wait for a slot. */
const MOST_KEPT_TRAININGS = 1000;

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

  const objects = await openObjectStore(settings);
  const blobs = new BlobStore(objects);
  const models = cleanup.use(new ModelAccess(connectTinker));
  const renderers = new Renderers({ objects, files: new ModelFiles(hubAccess(), settings.tokenizers) });
  const tasks = new TaskCache({ dir: join(stateDir, 'cache', 'tasks'), projectRoot: PROJECT_ROOT });
  if (roles.includes('rollouts')) void tasks.sweep().catch(() => {}); // another worker's sweep does it too
  const shared = { objects, blobs, records: new RunRecords(blobs), models, rendererOf: renderers.of };
  const inFlight = new InFlight();
  const common = {
    connection,
    namespace,
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    interceptors: { activity: [guardResults, beatAlways, inFlight.interceptor, workMetrics] },
    // Beats that come too seldom make a busy worker look dead.
    maxHeartbeatThrottleInterval: '2s',
    shutdownGraceTime: settings.workers.drainSeconds * 1000,
    ...deploymentOf(process.env),
  };
  const workers: Worker[] = [];
  const draining = new AbortController();

  if (roles.includes('control')) {
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.control,
        workflowBundle: await workflowBundle(PROJECT_ROOT, join(stateDir, 'cache')),
        maxCachedWorkflows: settings.workers.maxCachedWorkflows,
        stickyQueueScheduleToStartTimeout: '3s',
        maxConcurrentActivityTaskExecutions: settings.workers.controlSlots,
        activities: controlActivities({ ...shared, settings, stateDir, tasks }),
      }),
    );
  }

  if (roles.includes('rollouts')) {
    const folders = cleanup.use(new TrialFolders());
    const { publicUrl, ...listens } = settings.gateway;
    const starting = startGateway({ ...listens, ...(publicUrl === undefined ? {} : { publicUrl }) });
    const gateway = cleanup.use(
      await starting.catch((cause) => {
        throw cannotListen(settings.gateway, cause);
      }),
    );
    const variables = runnerVariables(settings.harbor.passEnv, process.env);
    const harbor = cleanup.use(residentRunner({ projectRoot: PROJECT_ROOT, stateDir, variables }));
    const deps = {
      ...shared,
      gateway,
      harbor: harbor.get,
      trialsDir: folders.place,
      memory: new TrialMemory({ reserveBytes: settings.workers.memoryReserveMb * 2 ** 20 }),
      runnerSecrets: variables.secrets,
      tasks,
      drain: draining.signal,
    };
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.rollouts,
        maxConcurrentActivityTaskExecutions: settings.workers.rolloutSlots,
        activities: rolloutActivities(deps),
      }),
    );
  }

  if (roles.includes('training')) {
    workers.push(
      await Worker.create({
        ...common,
        taskQueue: settings.taskQueues.training,
        maxConcurrentActivityTaskExecutions: settings.workers.trainingSlots,
        activities: trainingActivities({ ...shared, ...(alterAdvantages ? { alterAdvantages } : {}) }),
      }),
      await Worker.create({
        ...common,
        taskQueue: keepQueueOf(settings.taskQueues.training),
        maxConcurrentActivityTaskExecutions: MOST_KEPT_TRAININGS,
        interceptors: { activity: [beatAlways] }, // nobody waits for these: another worker goes on with them
        shutdownGraceTime: '2s',
        activities: createKeepTrainingActivities(shared),
      }),
    );
  }

  const owned = cleanup.move();
  const ended = Promise.all(workers.map((worker) => worker.run())).finally(() => owned.disposeAsync());
  return {
    ended,
    /** What runs now, for a person; empty when nothing does. */
    running: () => `${inFlight}`,
    /** Takes no new work, and hands over what has not ended when the drain time is over. */
    shutdown: () => {
      draining.abort();
      for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    },
  };
}

const connectTinker: Connect = (onWait, sessionId) =>
  sessionId === undefined ? TinkerClient.connect({ tags: ['stillroom'], onWait }) : TinkerClient.attach({ sessionId, onWait });

async function main(): Promise<void> {
  const { roles, settings, stateDir, metrics } = readWorkerFlags(process.argv.slice(2));
  requireSettings();
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
    (error) => {
      const { message, exitCode } = death(error);
      console.error(message);
      process.exit(exitCode);
    },
  );
