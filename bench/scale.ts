/**
 * What a long run costs Temporal and the blob store: the real workflows on the real dev server, the real blob store, and scoring as its
 * own activity; only trials, teacher and trainer answer at once with made-up tokens. Fails when a history or a message passes half of
 * what the server takes.
 *
 *   npm run bench -- scale [--steps 500] [--trials 64] [--group 4] [--holdout 8] [--k 3] [--concurrency 32] [--workers 2]
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { devServer, freePorts, LOOPBACK, Supervisor } from '../services/processes/index.ts';
import { PROJECT_ROOT, readEnvironment } from '../services/settings/index.ts';
import { workflowBundle } from '../services/temporal/workflow-bundle.ts';
import type { RunResult, RunStatus } from '../workflows/messages.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/search-attributes.ts';
import { lookInto, type OfType, type Payload, SERVER_LIMITS, sizesByType } from './support/scale/histories.ts';
import { scaleProject } from './support/scale/project.ts';
import type { WorkerReport } from './support/scale/worker.ts';
import { tableOf } from './support/table.ts';

const RUN_ID = 'scale';

/** Of the steps, only some histories are read whole. */
const STEPS_LOOKED_INTO = 20;

const count = (value: string) => {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1) throw new Error(`bench scale: "${value}" is no number of things`);
  return number;
};

export async function main(): Promise<void> {
  const option = (byDefault: string) => ({ type: 'string', default: byDefault }) as const;
  const defaults = { steps: '500', trials: '64', group: '4', holdout: '8', k: '3', concurrency: '32', workers: '2' };
  const options = Object.fromEntries(Object.entries(defaults).map(([name, value]) => [name, option(value)]));
  const asked = parseArgs({ options }).values as typeof defaults;
  const [steps, trials, group, holdout, k] = [asked.steps, asked.trials, asked.group, asked.holdout, asked.k].map(count) as [
    number,
    number,
    number,
    number,
    number,
  ];
  if (trials % group !== 0) throw new Error(`bench scale: ${trials} trials are no whole number of groups of ${group}`);
  await using cleanup = new AsyncDisposableStack();

  const { project, input } = await scaleProject({ steps, tasks: trials / group, group, holdout, k }, count(asked.concurrency));
  cleanup.use(project);
  const server = await startServer(project.root, cleanup);
  const client = new Client({ connection: await Connection.connect({ address: server.address }) });
  cleanup.defer(() => client.connection.close());
  const { codePath } = await workflowBundle(PROJECT_ROOT, join(project.root, 'cache'));
  const workers = await Promise.all(
    Array.from({ length: count(asked.workers) }, () => startWorker([project.root, server.address, codePath], cleanup)),
  );

  const startedAtMs = performance.now();
  const handle = await client.workflow.start('distill', { taskQueue: 'control', workflowId: RUN_ID, args: [input] });
  const ticking = setInterval(() => void tell(client, startedAtMs), 30_000);
  const result = (await handle.result().finally(() => clearInterval(ticking))) as RunResult;
  const wallMs = performance.now() - startedAtMs;

  const { types, all } = await sizesByType(
    client,
    (known) => (known.get('step')?.executions ?? 0) >= steps && (known.get('evaluate')?.executions ?? 0) >= 3,
  );
  const ofSteps = all.filter(({ type }) => type === 'step');
  const every = Math.max(1, Math.floor(ofSteps.length / STEPS_LOOKED_INTO));
  const looked = [...all.filter(({ type }) => type !== 'step'), ...ofSteps.filter((_, index) => index % every === 0)];
  let largest: Payload = { bytes: 0, of: '' };
  const kinds = new Map<string, Map<string, number>>();
  for (const execution of looked) {
    const found = await lookInto(client, execution);
    if (found.largest.bytes > largest.bytes) largest = found.largest;
    const known = kinds.get(execution.type) ?? new Map<string, number>();
    for (const [kind, times] of found.kinds) known.set(kind, (known.get(kind) ?? 0) + times);
    kinds.set(execution.type, known);
  }
  const reports = await Promise.all(workers.map(({ report }) => report()));
  const inAll = steps * trials + 3 * holdout * k;
  console.log(
    `${steps} steps × ${trials} trials and 3 evaluations × ${holdout * k}: ${inAll} trials, ${result.outcome}, ${(wallMs / 1000).toFixed(0)} s\n`,
  );
  printTypes(types);
  printKinds(kinds);
  printTotals({ types, inAll, wallMs, reports, largest, dbBytes: server.dbBytes() });
  if (isOver(types, largest)) {
    console.log('a history or a message passes half of what the server takes');
    process.exitCode = 1;
  }
}

type Totals = {
  readonly types: readonly OfType[];
  readonly inAll: number;
  readonly wallMs: number;
  readonly reports: readonly WorkerReport[];
  readonly largest: Payload;
  readonly dbBytes: number;
};

function printTypes(types: readonly OfType[]): void {
  const table = tableOf(
    ['workflow', 'executions', 'events', 'MB', 'most events', '% of limit', 'most MB', '% of limit'],
    ['left', 'right', 'right', 'right', 'right', 'right', 'right', 'right'],
  );
  for (const { type, executions, events, bytes, mostEvents, mostBytes } of types)
    table.push([
      type,
      executions,
      events,
      megabytes(bytes),
      mostEvents,
      share(mostEvents, SERVER_LIMITS.events),
      megabytes(mostBytes),
      share(mostBytes, SERVER_LIMITS.bytes),
    ]);
  console.log(table.toString());
}

function printKinds(kinds: ReadonlyMap<string, ReadonlyMap<string, number>>): void {
  for (const [type, counts] of kinds) {
    const all = [...counts.values()].reduce((sum, times) => sum + times, 0);
    const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, 8);
    console.log(
      `${type}: ${most.map(([kind, times]) => `${kind.replace('EventAttributes', '')} ${((100 * times) / all).toFixed(0)} %`).join(', ')}`,
    );
  }
}

function printTotals({ types, inAll, wallMs, reports, largest, dbBytes }: Totals): void {
  const sum = (of: (report: WorkerReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const [events, bytes] = [types.reduce((total, type) => total + type.events, 0), types.reduce((total, type) => total + type.bytes, 0)];
  const table = tableOf(['', ''], ['left', 'right']);
  table.push(['events per trial', (events / inAll).toFixed(1)]);
  table.push(['bytes of history per trial', (bytes / inAll).toFixed(0)]);
  table.push(['wall per trial, ms', (wallMs / inAll).toFixed(1)]);
  table.push(['blob puts per trial', (sum(({ puts }) => puts) / inAll).toFixed(2)]);
  table.push(['blob bytes per trial', (sum(({ putBytes }) => putBytes) / inAll).toFixed(0)]);
  table.push(['worker CPU per trial, ms', ((1000 * sum(({ cpuSeconds }) => cpuSeconds)) / inAll).toFixed(1)]);
  table.push(['largest worker, MB', megabytes(Math.max(...reports.map(({ rssBytes }) => rssBytes)))]);
  table.push(['server database, MB', megabytes(dbBytes)]);
  table.push([`largest message (${largest.of})`, `${largest.bytes} bytes, ${share(largest.bytes, SERVER_LIMITS.payloadBytes)}`]);
  console.log(table.toString());
}

const isOver = (types: readonly OfType[], largest: Payload) =>
  largest.bytes > SERVER_LIMITS.payloadBytes / 2 ||
  types.some(({ mostEvents, mostBytes }) => mostEvents > SERVER_LIMITS.events / 2 || mostBytes > SERVER_LIMITS.bytes / 2);

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;

async function startServer(root: string, cleanup: AsyncDisposableStack) {
  const supervisor = cleanup.use(new Supervisor({ logDir: join(root, 'logs'), onNotice: ({ line }) => console.log(line) }));
  const [port, uiPort, httpPort, metricsPort] = (await freePorts(4)) as [number, number, number, number];
  const dbFile = join(root, 'temporal.db');
  const searchAttributes = Object.values(SEARCH_ATTRIBUTES);
  await supervisor.start(devServer({ cli: readEnvironment().temporal, port, uiPort, httpPort, metricsPort, dbFile, searchAttributes }));
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return { address: `${LOOPBACK}:${port}`, dbBytes: () => sizeOf(dbFile) + sizeOf(`${dbFile}-wal`) };
}

async function startWorker(args: readonly string[], cleanup: AsyncDisposableStack) {
  const child = fork(join(import.meta.dirname, 'support/scale/worker.ts'), args);
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

async function tell(client: Client, startedAtMs: number): Promise<void> {
  const status = await client.workflow
    .getHandle(RUN_ID)
    .query<RunStatus>('status')
    .catch(() => null);
  if (status)
    console.log(`  ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s: ${status.phase}, step ${status.step} of ${status.steps}`);
}
