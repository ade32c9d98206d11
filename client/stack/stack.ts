import { join } from 'node:path';
import {
  devServer,
  freePorts,
  LOOPBACK,
  type Notice,
  ProcessFailed,
  requireFreePort,
  type Supervised,
  Supervisor,
} from '../../services/processes/index.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/search-attributes.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import type { StackOptions } from './options.ts';
import { trainer, trainerUrl, worker } from './parts.ts';
import { lockState } from './state-lock.ts';

/** Everything that runs on this machine for Stillroom. */
export type Stack = {
  readonly address: string;
  readonly webUrl: string;
  /** Null when another training service is used. */
  readonly trainerUrl: string | null;
  readonly processes: readonly Supervised[];
  readonly startUpMs: number;
  /** Stops everything in order; when it resolves, nothing of it runs. */
  stop(): Promise<void>;
  /** Kills everything at once, for a person in a hurry. */
  kill(): void;
};

export type StackWatch = {
  readonly onNotice: (notice: Notice) => void;
  readonly onStep: (text: string) => void;
  readonly signal: AbortSignal;
};

/**
 * Starts the Temporal dev server, the embedded trainer and the workers, and keeps them running.
 * @throws PortBusy or CliError (bad input) before anything is started; CliError (failed) when a part does not come up; an AbortError on
 * `signal`. In each case nothing is left running.
 */
export async function startStack(options: StackOptions, { onNotice, onStep, signal }: StackWatch): Promise<Stack> {
  const startedAtMs = performance.now();
  await requirePorts(options);
  const unlock = lockState(options.stateDir);
  const supervisor = new Supervisor({ logDir: join(options.stateDir, 'logs'), onNotice });
  const stop = async () => {
    await supervisor.stop();
    unlock();
  };
  try {
    const processes = await startParts(supervisor, options, onStep, signal);
    return {
      address: `${LOOPBACK}:${options.port}`,
      webUrl: `http://${LOOPBACK}:${options.uiPort}`,
      trainerUrl: options.trainerPort === null ? null : trainerUrl(options.trainerPort),
      processes,
      startUpMs: performance.now() - startedAtMs,
      stop,
      kill: () => processes.forEach(kill),
    };
  } catch (error) {
    await stop();
    throw error instanceof ProcessFailed && !signal.aborted
      ? new CliError(error.message, EXIT.failed)
      : signal.aborted
        ? signal.reason
        : error;
  }
}

async function requirePorts({ port, uiPort, trainerPort }: StackOptions): Promise<void> {
  await requireFreePort(port, 'Temporal', '--port');
  await requireFreePort(uiPort, 'Temporal Web UI', '--ui-port');
  if (trainerPort !== null) await requireFreePort(trainerPort, 'embedded trainer', '--trainer-port');
}

/** Server and trainer do not need each other; workers need the server. */
async function startParts(supervisor: Supervisor, options: StackOptions, onStep: (text: string) => void, signal: AbortSignal) {
  const stopEarly = () => void supervisor.stop();
  signal.addEventListener('abort', stopEarly);
  try {
    const [httpPort, metricsPort] = (await freePorts(2)) as [number, number];
    const { environment, port, uiPort, dbFile, trainerPort } = options;
    const searchAttributes = Object.values(SEARCH_ATTRIBUTES);
    onStep(trainerPort === null ? 'starting Temporal' : 'starting Temporal and the trainer');
    const server = supervisor.start(
      devServer({ cli: environment.temporal, port, uiPort, httpPort, metricsPort, dbFile, searchAttributes }),
    );
    const services = [server, ...(trainerPort === null ? [] : [supervisor.start(trainer(trainerPort, options))])];
    const running = await allOrFirstFailure(services);
    signal.throwIfAborted();
    onStep(options.workers.length === 1 ? 'starting the worker' : `starting ${options.workers.length} workers`);
    const workers = options.workers.map((roles, index) => supervisor.start(worker(index, roles, options)));
    return [...running, ...(await allOrFirstFailure(workers))];
  } finally {
    signal.removeEventListener('abort', stopEarly);
  }
}

/** Waits for all, so that none is still starting when the caller cleans up; then fails with the first failure. */
async function allOrFirstFailure<T>(starting: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(starting);
  return Promise.all(starting);
}

function kill({ pid }: Supervised): void {
  if (pid === undefined) return;
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}
