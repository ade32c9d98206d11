import { Context } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { createKeepTrainingActivities } from '../../activities/keep-training.ts';
import { RunRecords } from '../../activities/run-records.ts';
import { createTrainingActivities, type TrainingActivities } from '../../activities/training.ts';
import { keepQueueOf } from '../../core/training/keep-queue.ts';
import { BlobStore } from '../../services/blobs/blob-store.ts';
import { FileObjectStore } from '../../services/blobs/file-object-store.ts';
import { endWithParent } from '../../services/processes/index.ts';
import { accessTo } from '../support/access.ts';

/** A training worker in a process of its own, to be stopped and killed. It takes one training call at a time, so that it never sits on a second. */
export type WorkerFlags = {
  readonly address: string;
  readonly queue: string;
  readonly trainerUrl: string;
  readonly store: string;
  /** Its attempts are never told that they were given up, as one that has not heard of it yet. */
  readonly isDeaf: boolean;
};

async function main({ address, queue, trainerUrl, store, isDeaf }: WorkerFlags): Promise<void> {
  Runtime.install({ logger: new DefaultLogger('WARN'), shutdownSignals: [] });
  const connection = await NativeConnection.connect({ address });
  const objects = new FileObjectStore(store);
  const blobs = new BlobStore(objects);
  const deps = { records: new RunRecords(blobs), blobs, objects, models: accessTo(trainerUrl) };
  const activities = createTrainingActivities(deps);
  const workers = await Promise.all([
    Worker.create({
      connection,
      taskQueue: queue,
      maxConcurrentActivityTaskExecutions: 1,
      activities: isDeaf ? deaf(activities) : activities,
    }),
    Worker.create({ connection, taskQueue: keepQueueOf(queue), activities: createKeepTrainingActivities(deps) }),
  ]);
  endWithParent(() => process.exit(0));
  console.log('ready');
  await Promise.all(workers.map((worker) => worker.run()));
}

/** The same activities, each in a context of its own that nobody cancels. */
function deaf(activities: TrainingActivities): Record<string, (order: never) => Promise<unknown>> {
  const entries = Object.entries(activities).map(([name, work]) => {
    const alone = async (order: never) => {
      const context = Context.current();
      const beat = setInterval(() => context.heartbeat(), 500);
      return new MockActivityEnvironment(context.info).run(() => work(order)).finally(() => clearInterval(beat));
    };
    return [name, alone] as const;
  });
  return Object.fromEntries(entries);
}

await main(JSON.parse(process.argv[2] ?? '') as WorkerFlags);
