/** A worker process of the scale bench: `node worker.ts ROOT ADDRESS BUNDLE`. Asked with a message, it tells what it used. */
import { join } from 'node:path';
import { DefaultLogger, NativeConnection, Runtime, Worker } from '@temporalio/worker';
import { keepQueueOf } from '../../../core/training/keep-queue.ts';
import { FileObjectStore } from '../../../services/blobs/file-object-store.ts';
import { guardResults } from '../../../services/temporal/activity-guards.ts';
import { PAYLOAD_CONVERTER } from '../../../services/temporal/workflow-bundle.ts';
import { CountingStore } from './counting-store.ts';
import { world } from './world.ts';

export type WorkerReport = {
  readonly puts: number;
  readonly putBytes: number;
  readonly gets: number;
  readonly rssBytes: number;
  readonly cpuSeconds: number;
};

const [root, address, codePath] = process.argv.slice(2) as [string, string, string];
Runtime.install({ logger: new DefaultLogger('ERROR') });
const connection = await NativeConnection.connect({ address });
const objects = new CountingStore(new FileObjectStore(join(root, 'blobs')));
const activities = world(root, objects);
const workers = await Promise.all(
  ['control', 'rollouts', 'training', keepQueueOf('training')].map((taskQueue) =>
    Worker.create({
      connection,
      taskQueue,
      activities,
      ...(taskQueue === 'control' ? { workflowBundle: { codePath }, maxCachedWorkflows: 100 } : {}),
      dataConverter: { payloadConverterPath: PAYLOAD_CONVERTER },
      interceptors: { activity: [guardResults] },
    }),
  ),
);
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  const { puts, putBytes, gets } = objects;
  const rssBytes = process.resourceUsage().maxRSS * 1024;
  process.send?.({ puts, putBytes, gets, rssBytes, cpuSeconds: (user + system) / 1e6 } satisfies WorkerReport);
});
process.on('disconnect', () => process.exit(1));
process.send?.('ready');
await Promise.all(workers.map((worker) => worker.run()));
process.exit(0);
