import { fork } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { devServer, freePorts, LOOPBACK, Supervisor } from '../../../services/processes/index.ts';
import { readEnvironment } from '../../../services/settings/index.ts';
import { SEARCH_ATTRIBUTES } from '../../../workflows/search-attributes.ts';
import type { WorkerReport } from './worker.ts';

/** The dev server as `stillroom up` starts it, with its database in `root`. */
export async function startServer(root: string, cleanup: AsyncDisposableStack) {
  const supervisor = cleanup.use(new Supervisor({ logDir: join(root, 'logs'), onNotice: ({ line }) => console.log(line) }));
  const [port, uiPort, httpPort, metricsPort] = (await freePorts(4)) as [number, number, number, number];
  const dbFile = join(root, 'temporal.db');
  const searchAttributes = Object.values(SEARCH_ATTRIBUTES);
  await supervisor.start(devServer({ cli: readEnvironment().temporal, port, uiPort, httpPort, metricsPort, dbFile, searchAttributes }));
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return { address: `${LOOPBACK}:${port}`, dbBytes: () => sizeOf(dbFile) + sizeOf(`${dbFile}-wal`) };
}

/** A worker process; its report tells what it used. */
export async function startWorker(args: readonly string[], cleanup: AsyncDisposableStack) {
  const child = fork(join(import.meta.dirname, 'worker.ts'), args);
  const ended = once(child, 'exit');
  cleanup.defer(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  const failed = ended.then(([code]) => Promise.reject(new Error(`a worker ended with ${code}`)));
  failed.catch(() => {});
  await Promise.race([once(child, 'message'), failed]);
  const report = async () => {
    const answer = once(child, 'message');
    child.send('report');
    return (await answer)[0] as WorkerReport;
  };
  return { report };
}
