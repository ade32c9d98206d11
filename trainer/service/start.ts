import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Plan } from '../faults/plan.ts';
import { withFaults } from '../faults/with-faults.ts';
import { CallLog } from './call-log.ts';
import { StateError } from './failures.ts';
import { createApp } from './http/app.ts';
import { gated, type KeyRule } from './http/gate.ts';
import { Service } from './service.ts';
import { lockState, type StateLock } from './state-lock.ts';
import { SamplingThread } from './threads/sampling-backend.ts';
import type { BaseModelFile } from './threads/thread-calls.ts';
import { TrainingThread } from './threads/training-backend.ts';

export type TrainerOptions = {
  /** On 127.0.0.1; 0 takes any free port. */
  readonly port: number;
  /** An existing folder. */
  readonly stateFolder: string;
  readonly models: readonly BaseModelFile[];
  readonly keys: KeyRule;
  /** Makes the service fail on purpose; null in earnest. */
  readonly faults: Plan | null;
  /** File that gets a line for each call that was carried out, see `CallLog`; null for none. */
  readonly callLogFile: string | null;
  /** What checkpoints expire by. */
  readonly now: () => Date;
  /** Called when only a restart can help; must end the process. */
  readonly onFatal: (reason: unknown) => void;
};

/** Clients give up a poll after 45 s. */
const LONG_POLL_MS = 20_000;

/**
 * Starts the service. Rejects with EADDRINUSE when the port is taken and with StateError when the state folder is
 * or the base models cannot be loaded; nothing is read or written before port and folder are ours.
 */
export async function startTrainer(options: TrainerOptions): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> {
  // Whoever connects while the state is read waits for it.
  const handler = Promise.withResolvers<ReturnType<typeof getRequestListener>>();
  const server = createServer((request, response) => void handler.promise.then((handle) => handle(request, response)));
  const port = await listen(server, options.port);
  const lock = locked(options.stateFolder, server);
  const training = new TrainingThread(options.models, options.onFatal);
  const sampling = new SamplingThread(options.models, options.onFatal);
  const service = new Service({
    stateFolder: options.stateFolder,
    baseModels: options.models.map((model) => model.name),
    training,
    samplingBackend: sampling,
    longPollMs: LONG_POLL_MS,
    now: options.now,
    ...(options.callLogFile === null ? {} : { callLog: CallLog.open(options.callLogFile) }),
    onFatal: options.onFatal,
  });
  await Promise.all([training.ready, sampling.ready]).catch((error: unknown) => {
    throw new StateError(`the base models cannot be loaded: ${error instanceof Error ? error.message : String(error)}`);
  });
  const app = createApp(service);
  const answer = options.faults === null ? app.fetch : withFaults(app, options.faults);
  handler.resolve(getRequestListener(gated(options.keys, answer).fetch));
  const stop = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await Promise.all([training.stop(), sampling.stop()]);
    service.close();
    lock.close();
  };
  return { url: `http://127.0.0.1:${port}`, stop };
}

function locked(folder: string, server: Server): StateLock {
  try {
    return lockState(folder);
  } catch (error) {
    server.close();
    throw error;
  }
}

function listen(server: Server, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  server.once('error', reject);
  server.listen(port, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  return promise;
}
