/**
 * What a long run costs Temporal and the blob store: the real workflows on the real dev server, the real blob store, and scoring as its
 * own activity; only trials, teacher and trainer answer at once with made-up tokens. Fails when a history or a message passes half of
 * what the server takes.
 *
 *   npm run bench -- scale [--steps 500] [--trials 64] [--group 4] [--holdout 8] [--k 3] [--concurrency 32] [--workers 2]
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client, Connection } from '@temporalio/client';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import { workflowBundle } from '../services/temporal/workflow-bundle.ts';
import type { RunResult, RunStatus } from '../workflows/messages.ts';
import { lookInto, type OfType, type Payload, type SizedExecution, sizesByType } from './support/scale/histories.ts';
import { isOver, printKinds, printTotals, printTypes } from './support/scale/print.ts';
import { scaleProject } from './support/scale/project.ts';
import { startServer, startWorker } from './support/scale/stack.ts';

const RUN_ID = 'scale';
const EVALUATIONS = 3;

/** Of the steps, only some histories are read whole. */
const STEPS_LOOKED_INTO = 20;

const DEFAULTS = { steps: 500, trials: 64, group: 4, holdout: 8, k: 3, concurrency: 32, workers: 2 };

function sizes(): typeof DEFAULTS {
  const options = Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, { type: 'string' } as const]));
  const given = Object.entries(parseArgs({ options }).values).map(([name, value]) => {
    const number = Number(value);
    if (!Number.isInteger(number) || number < 1) throw new Error(`bench scale: --${name} ${value} is no number of things`);
    return [name, number];
  });
  return { ...DEFAULTS, ...Object.fromEntries(given) };
}

export async function main(): Promise<void> {
  const { steps, trials, group, holdout, k, concurrency, workers: processes } = sizes();
  if (trials % group !== 0) throw new Error(`bench scale: ${trials} trials are no whole number of groups of ${group}`);
  await using cleanup = new AsyncDisposableStack();
  const { project, input } = await scaleProject({ steps, tasks: trials / group, group, holdout, k }, concurrency);
  cleanup.use(project);
  const server = await startServer(project.root, cleanup);
  const client = new Client({ connection: await Connection.connect({ address: server.address }) });
  cleanup.defer(() => client.connection.close());
  const { codePath } = await workflowBundle(PROJECT_ROOT, join(project.root, 'cache'));
  const args = [project.root, server.address, codePath];
  const workers = await Promise.all(Array.from({ length: processes }, () => startWorker(args, cleanup)));

  const { outcome, wallMs } = await run(client, input);
  const inAll = steps * trials + EVALUATIONS * holdout * k;
  const evaluations = `${EVALUATIONS} evaluations × ${holdout * k}`;
  console.log(`${steps} steps × ${trials} trials and ${evaluations}: ${inAll} trials, ${outcome}, ${(wallMs / 1000).toFixed(0)} s\n`);
  const isWhole = (known: ReadonlyMap<string, OfType>) =>
    (known.get('step')?.executions ?? 0) >= steps && (known.get('evaluate')?.executions ?? 0) >= EVALUATIONS;
  const { types, all } = await sizesByType(client, isWhole);
  const { largest, kinds } = await lookIntoSome(client, all);
  const reports = await Promise.all(workers.map(({ report }) => report()));
  printTypes(types);
  printKinds(kinds);
  printTotals({ types, inAll, wallMs, reports, largest, dbBytes: server.dbBytes() });
  if (!isOver(types, largest)) return;
  console.log('a history or a message passes half of what the server takes');
  process.exitCode = 1;
}

async function run(client: Client, input: object): Promise<{ outcome: string; wallMs: number }> {
  const startedAtMs = performance.now();
  const handle = await client.workflow.start('distill', { taskQueue: 'control', workflowId: RUN_ID, args: [input] });
  const ticking = setInterval(() => void tell(client, startedAtMs), 30_000);
  const { outcome } = (await handle.result().finally(() => clearInterval(ticking))) as RunResult;
  return { outcome, wallMs: performance.now() - startedAtMs };
}

/** The largest message, and the kinds of events by workflow type: of all executions, but only of some steps. */
async function lookIntoSome(client: Client, all: readonly SizedExecution[]) {
  const ofSteps = all.filter(({ type }) => type === 'step');
  const every = Math.max(1, Math.floor(ofSteps.length / STEPS_LOOKED_INTO));
  let largest: Payload = { bytes: 0, of: '' };
  const kinds = new Map<string, Map<string, number>>();
  for (const execution of [...all.filter(({ type }) => type !== 'step'), ...ofSteps.filter((_, index) => index % every === 0)]) {
    const found = await lookInto(client, execution);
    if (found.largest.bytes > largest.bytes) largest = found.largest;
    const known = kinds.get(execution.type) ?? new Map<string, number>();
    for (const [kind, times] of found.kinds) known.set(kind, (known.get(kind) ?? 0) + times);
    kinds.set(execution.type, known);
  }
  return { largest, kinds };
}

async function tell(client: Client, startedAtMs: number): Promise<void> {
  const status = await client.workflow
    .getHandle(RUN_ID)
    .query<RunStatus>('status')
    .catch(() => null);
  if (status)
    console.log(`  ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s: ${status.phase}, step ${status.step} of ${status.steps}`);
}
