import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { keepQueueOf } from '../../core/training/keep-queue.ts';
import { readEnvironment } from '../../services/settings/index.ts';
import { registerSearchAttributes } from '../../services/temporal/search-attributes.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/search-attributes.ts';
import type { AllActivities } from './fake-activities.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const logger = new DefaultLogger('ERROR');
Runtime.install({ logger });

let bundle: Promise<WorkflowBundleWithSourceMap> | undefined;
export const workflowBundle = () => (bundle ??= bundleWorkflowCode({ workflowsPath: join(root, 'workflows/index.ts'), logger }));

/** A server whose clock jumps over every wait, from the private Python environment. */
export async function timeSkippingServer(): Promise<TestWorkflowEnvironment> {
  const executable = { type: 'existing-path', path: readEnvironment().temporalTestServer } as const;
  const env = await TestWorkflowEnvironment.createTimeSkipping({ server: { executable } });
  await registerSearchAttributes(env.connection, 'default', Object.values(SEARCH_ATTRIBUTES));
  return env;
}

/** A real server in memory, for everything that needs no jump in time: the time-skipping one leaves some queries without an answer. */
export async function localServer(...extraArgs: readonly string[]): Promise<TestWorkflowEnvironment> {
  const env = await bareServer(...extraArgs);
  await registerSearchAttributes(env.connection, 'default', Object.values(SEARCH_ATTRIBUTES));
  return env;
}

/** The same, but it knows nothing yet of what runs need. */
export function bareServer(...extraArgs: readonly string[]): Promise<TestWorkflowEnvironment> {
  const executable = { type: 'existing-path', path: readEnvironment().temporal } as const;
  return TestWorkflowEnvironment.createLocal({ server: { executable, extraArgs: ['--log-level', 'never', ...extraArgs] } });
}

/** Runs `test` while workers poll the run's three queues with `activities`. */
export async function withWorkers<T>(
  env: TestWorkflowEnvironment,
  activities: AllActivities,
  test: (taskQueue: string) => Promise<T>,
): Promise<T> {
  const taskQueue = 'stillroom';
  const queue = async (name: string) =>
    Worker.create({ connection: env.nativeConnection, taskQueue: name, workflowBundle: await workflowBundle(), activities });
  const queues = [taskQueue, 'rollouts', 'training', keepQueueOf('training')];
  const workers = await Promise.all(queues.map(queue));
  const whileAllRun = workers.reduce<() => Promise<T>>(
    (inner, worker) => () => worker.runUntil(inner),
    () => test(taskQueue),
  );
  return whileAllRun();
}
