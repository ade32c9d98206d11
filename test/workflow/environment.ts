import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { keepQueueOf } from '../../core/training/keep-queue.ts';
import { readEnvironment } from '../../services/settings/index.ts';
import { guardResults } from '../../services/temporal/activity-guards.ts';
import { registerSearchAttributes } from '../../services/temporal/search-attributes.ts';
import { PAYLOAD_CONVERTER } from '../../services/temporal/workflow-bundle.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/search-attributes.ts';
import { workflowBundle } from '../support/bundle.ts';
import type { AllActivities } from './fake-activities.ts';

Runtime.install({ logger: new DefaultLogger('ERROR') });

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

/** Runs `test` while workers poll the run's queues with `activities`. */
export async function withWorkers<T>(
  env: TestWorkflowEnvironment,
  activities: AllActivities,
  test: (taskQueue: string) => Promise<T>,
  { rolloutSlots = 100 }: { readonly rolloutSlots?: number } = {},
): Promise<T> {
  const taskQueue = 'stillroom';
  const common = {
    connection: env.nativeConnection,
    activities,
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    interceptors: { activity: [guardResults] },
    maxHeartbeatThrottleInterval: 100, // a cancellation comes with a beat
  };
  const slotsOf = (queue: string) => ({ maxConcurrentActivityTaskExecutions: queue === 'rollouts' ? rolloutSlots : 100 });
  const workers = await Promise.all([
    Worker.create({ ...common, taskQueue, workflowBundle: await workflowBundle() }),
    ...['rollouts', 'training', keepQueueOf('training')].map((queue) => Worker.create({ ...common, ...slotsOf(queue), taskQueue: queue })),
  ]);
  const whileAllRun = workers.reduce<() => Promise<T>>(
    (inner, worker) => () => worker.runUntil(inner),
    () => test(taskQueue),
  );
  return whileAllRun();
}
