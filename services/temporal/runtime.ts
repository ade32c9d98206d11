import { DefaultLogger, Runtime, type RuntimeOptions } from '@temporalio/worker';

/** Where a process serves its metrics as Prometheus reads them, under `/metrics`. */
export type MetricsAddress = { readonly host: string; readonly port: number };

/** `temporal worker list` shows a worker by its heartbeats: soon after its start, and not long after its end. */
const HEARTBEAT = '10s' satisfies RuntimeOptions['workerHeartbeatInterval'];

/** An address that cannot be listened on. A person chooses another one, so the process ends with exit code 2. */
export class MetricsUnavailable extends Error {
  readonly exitCode = 2;
  override readonly name = 'MetricsUnavailable';
}

/**
 * Sets Temporal's native part up, once a process and before the first connection. Signals are left to us.
 * @throws MetricsUnavailable
 */
export function installRuntime(metrics: MetricsAddress | null): void {
  const common: RuntimeOptions = { logger: new DefaultLogger('WARN'), shutdownSignals: [], workerHeartbeatInterval: HEARTBEAT };
  if (metrics === null) return void Runtime.install(common);
  const bindAddress = `${metrics.host.includes(':') ? `[${metrics.host}]` : metrics.host}:${metrics.port}`;
  try {
    Runtime.install({ ...common, telemetryOptions: { metrics: { prometheus: { bindAddress } } } });
  } catch (error) {
    throw new MetricsUnavailable(
      `metrics cannot be served on ${bindAddress} (${(error as Error).message}). Choose another port with --metrics-port, ` +
        'or an address of this machine in workers.metricsHost.',
    );
  }
}
