import { LOOPBACK } from './ports.ts';
import type { ProcessSpec } from './spec.ts';

/** Where the dev server listens and keeps its data. All ports are on 127.0.0.1; all four stay the same over restarts. */
export type DevServerOptions = {
  /** The `temporal` command: a path, or a name on PATH. */
  readonly cli: string;
  readonly port: number;
  readonly uiPort: number;
  /** Its HTTP API, which is also how we know that it serves. */
  readonly httpPort: number;
  readonly metricsPort: number;
  readonly dbFile: string;
  /** What the server must know before a workflow uses it; types as the SDK names them, e.g. `KEYWORD` or `KEYWORD_LIST`. */
  readonly searchAttributes: readonly { readonly name: string; readonly type: string }[];
};

/** Without WAL a file database does 20 activities a second instead of 200; `NORMAL` is safe against any kill of the process. */
const SQLITE_PRAGMAS = ['journal_mode=WAL', 'synchronous=NORMAL'];

const DYNAMIC_CONFIG = [
  'history.timerProcessorMaxTimeShift="10ms"', // else each timer and retry delay below one second takes one second
  'matching.numTaskqueueReadPartitions=1', // priority and fairness keys are honoured only within a partition
  'matching.numTaskqueueWritePartitions=1',
  'matching.enableFairness=true', // else a run waits until all that an earlier one has queued is done
  'frontend.WorkflowPauseEnabled=true', // for `temporal workflow pause`
];

/** What makes the dev server quick and fair, as its arguments. */
export const DEV_SERVER_TUNING: readonly string[] = [
  ...SQLITE_PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma]),
  ...DYNAMIC_CONFIG.flatMap((entry) => ['--dynamic-config-value', entry]),
];

/** The Temporal dev server with its Web UI, for the supervisor. It serves when the default namespace can be described. */
export function devServer({ cli, port, uiPort, httpPort, metricsPort, dbFile, searchAttributes }: DevServerOptions): ProcessSpec {
  return {
    name: 'temporal',
    command: cli,
    args: [
      ...['server', 'start-dev', '--ip', LOOPBACK, '--port', `${port}`, '--ui-port', `${uiPort}`],
      ...['--http-port', `${httpPort}`, '--metrics-port', `${metricsPort}`, '--db-filename', dbFile, '--log-level', 'warn'],
      '--ui-disable-news-fetch',
      ...DEV_SERVER_TUNING,
      ...searchAttributes.flatMap(({ name, type }) => ['--search-attribute', `${name}=${cliType(type)}`]),
    ],
    ready: {
      kind: 'check',
      isReady: async (signal) => (await fetch(`http://${LOOPBACK}:${httpPort}/api/v1/namespaces/default`, { signal })).ok,
    },
    readyTimeoutMs: 60_000,
    stopGraceMs: 10_000, // it needs 2.7 s, more on a loaded machine
    leash: 'wrapper',
  };
}

/** The command line's spelling of a type: `KEYWORD_LIST` is `KeywordList`. */
const cliType = (type: string) => type.toLowerCase().replace(/(?:^|_)(\w)/g, (_, letter: string) => letter.toUpperCase());
