import { appendFileSync } from 'node:fs';
import { Context } from '@temporalio/activity';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { keepQueueOf } from '../../core/training/keep-queue.ts';
import { endWithParent } from '../../services/processes/index.ts';
import { guardResults } from '../../services/temporal/activity-guards.ts';
import { PAYLOAD_CONVERTER } from '../../services/temporal/workflow-bundle.ts';
import { untilCancelled } from '../workflow/cancelled.ts';
import { type AllActivities, fakeActivities } from '../workflow/fake-activities.ts';
import { TASK_QUEUES } from './runs.ts';

/** A worker in a process of its own, to be killed: the real workflows with fake activities, each of which is written down when it begins. */
export type WorkerFlags = { readonly address: string; readonly codePath: string; readonly callLog: string };

async function main({ address, codePath, callLog }: WorkerFlags): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: [] });
  const connection = await NativeConnection.connect({ address });
  const fakes = fakeActivities({ keepTraining: untilCancelled });
  const activities = new Proxy(fakes, {
    get: (_, name: keyof AllActivities) => (order: never) => {
      const { workflowExecution, activityId } = Context.current().info;
      appendFileSync(callLog, `${workflowExecution?.workflowId} ${activityId} ${String(name)}\n`);
      return fakes[name](order);
    },
  });
  const common = {
    connection,
    activities,
    dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
    interceptors: { activity: [guardResults] },
  };
  const { control, rollouts, training } = TASK_QUEUES;
  const workers = await Promise.all([
    Worker.create({ ...common, taskQueue: control, workflowBundle: { codePath }, stickyQueueScheduleToStartTimeout: '3s' }),
    ...[rollouts, training, keepQueueOf(training)].map((taskQueue) => Worker.create({ ...common, taskQueue })),
  ]);
  endWithParent(() => process.exit(0));
  console.log(JSON.stringify({ ready: true }));
  await Promise.all(workers.map((worker) => worker.run()));
}

await main(JSON.parse(process.argv[2] ?? '') as WorkerFlags);
