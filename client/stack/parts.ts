import { join } from 'node:path';
import { LOOPBACK, type ProcessSpec } from '../../services/processes/index.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import type { StackOptions } from './options.ts';

/** Any key of this form opens the embedded trainer, which only this machine reaches. */
export const LOCAL_KEY = 'tml-local-demo';
/** How long a worker may take to end what it does not wait for any more: sandboxes and the harbor process. */
const CLEAN_UP_MS = 13_000;
const READY = /"ready":\s*true/;

/** The embedded trainer. Its state survives it, so it may be started again at any time. */
export function trainer(port: number, { stateDir }: StackOptions): ProcessSpec {
  return {
    name: 'trainer',
    command: process.execPath,
    args: [join(PROJECT_ROOT, 'trainer', 'main.ts'), '--port', `${port}`, '--state', join(stateDir, 'trainer')],
    cwd: PROJECT_ROOT,
    ready: { kind: 'line', pattern: READY },
    readyTimeoutMs: 60_000,
    leash: 'wrapper',
  };
}

/** A worker of our own dev server; variables that lead elsewhere are taken away. */
export function worker(index: number, roles: string, options: StackOptions): ProcessSpec {
  const { environment, port, trainerPort, stateDir, metricsPort, drainSeconds } = options;
  const metrics = metricsPort === null ? [] : ['--metrics-port', `${metricsPort + index}`];
  return {
    name: index === 0 ? 'worker' : `worker-${index + 1}`,
    command: process.execPath,
    args: [join(PROJECT_ROOT, 'worker.ts'), '--state', stateDir, '--role', roles, ...metrics],
    cwd: PROJECT_ROOT,
    env: {
      ...LOCAL_SERVER_ONLY,
      TEMPORAL_ADDRESS: `${LOOPBACK}:${port}`,
      TEMPORAL_NAMESPACE: 'default',
      STILLROOM_PYTHON: environment.python,
      STILLROOM_SANDBOX: environment.sandbox,
      ...(trainerPort === null ? {} : { TINKER_BASE_URL: trainerUrl(trainerPort), TINKER_API_KEY: LOCAL_KEY }),
    },
    ready: { kind: 'line', pattern: READY },
    readyTimeoutMs: 120_000,
    stopGraceMs: drainSeconds * 1000 + CLEAN_UP_MS,
    leash: 'self',
  };
}

export const trainerUrl = (port: number): string => `http://${LOOPBACK}:${port}`;

/** A profile or key for a cluster must not reach the worker of the server that we start. */
const LOCAL_SERVER_ONLY: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  Object.keys(process.env)
    .filter((name) => name.startsWith('TEMPORAL_'))
    .map((name) => [name, undefined]),
);
