import { join, resolve } from 'node:path';
import { type AppSettings, type Environment, PROJECT_ROOT } from '../../services/settings/index.ts';

/** What `up` and `demo` start, and where. All ports are on this machine's loopback. */
export type StackOptions = {
  readonly stateDir: string;
  readonly port: number;
  readonly uiPort: number;
  readonly dbFile: string;
  /** Port of the embedded trainer; null uses the service that TINKER_BASE_URL and TINKER_API_KEY name. */
  readonly trainerPort: number | null;
  /** Roles of each worker process, e.g. `all` or `control,training`. */
  readonly workers: readonly string[];
  /** How long a worker may take to end what it runs. */
  readonly drainSeconds: number;
  /** Port of the first worker's metrics, each next one's is one higher; null for none. */
  readonly metricsPort: number | null;
  readonly environment: Environment;
};

/** The options that `up` and `demo` share, as typed. */
export type StackFlags = { readonly port?: number; readonly uiPort?: number; readonly trainerPort?: number; readonly state?: string };

/** The state folder of everything that is not said to be elsewhere, relative to the project root. */
const DEFAULT_STATE = '.stillroom';

/** Settings of the project where no flag says otherwise. A state folder of its own has a database of its own. */
export function stackOptions(
  flags: StackFlags,
  settings: AppSettings,
  environment: Environment,
  parts: Pick<StackOptions, 'workers'> & { readonly trainer: boolean },
): StackOptions {
  const stateDir = resolve(PROJECT_ROOT, flags.state ?? DEFAULT_STATE);
  return {
    stateDir,
    port: flags.port ?? settings.temporal.port,
    uiPort: flags.uiPort ?? (flags.port === undefined ? settings.temporal.uiPort : flags.port + 1000),
    dbFile: flags.state === undefined ? settings.temporal.dbFile : join(stateDir, 'temporal.db'),
    trainerPort: parts.trainer ? (flags.trainerPort ?? settings.trainer.port) : null,
    workers: parts.workers,
    drainSeconds: settings.workers.drainSeconds,
    metricsPort: settings.workers.metricsPort ?? null,
    environment,
  };
}
