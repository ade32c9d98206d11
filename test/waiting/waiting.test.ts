import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import pLimit from 'p-limit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectTo, type Link } from '../../client/connection.ts';
import { devServer, freePorts, LOOPBACK, type Supervised, Supervisor } from '../../services/processes/index.ts';
import { readEnvironment } from '../../services/settings/index.ts';
import type { distill } from '../../workflows/distill.ts';
import { decidePromotionUpdate, statusQuery } from '../../workflows/messages.ts';
import { SEARCH_ATTRIBUTES } from '../../workflows/search-attributes.ts';
import { workflowBundle } from '../support/bundle.ts';
import { descendants } from '../support/process-tree.ts';
import { INPUT } from '../workflow/runs.ts';
import { TASK_QUEUES, trainedRun } from './runs.ts';
import type { WorkerFlags } from './worker.ts';

const RUNS = Array.from({ length: 50 }, (_, index) => `waits-${index}`);
const WATCHED_MS = 5_000;
const AT_ONCE = pLimit(10);
const each = <T>(work: (runId: string) => Promise<T>): Promise<T[]> => Promise.all(RUNS.map((runId) => AT_ONCE(() => work(runId))));

const folder = mkdtempSync(join(tmpdir(), 'stillroom-waiting-'));
const callLog = join(folder, 'calls.txt');
const calls = () => readFileSync(callLog, 'utf8').trim().split('\n');
const supervisor = new Supervisor({ logDir: folder, onNotice: ({ line }) => console.log(line) });
let parts: readonly Supervised[];
let link: Link;
let client: Client;
beforeAll(async () => {
  const [port, uiPort, httpPort, metricsPort] = (await freePorts(4)) as [number, number, number, number];
  const address = `${LOOPBACK}:${port}`;
  const searchAttributes = Object.values(SEARCH_ATTRIBUTES);
  const cli = readEnvironment().temporal;
  const server = await supervisor.start(
    devServer({ cli, port, uiPort, httpPort, metricsPort, dbFile: join(folder, 'temporal.db'), searchAttributes }),
  );
  const flags: WorkerFlags = { address, callLog, ...(await workflowBundle()) };
  const worker = await supervisor.start({
    name: 'worker',
    command: process.execPath,
    args: [join(import.meta.dirname, 'worker.ts'), JSON.stringify(flags)],
    ready: { kind: 'line', pattern: /"ready":true/ },
    readyTimeoutMs: 60_000,
    leash: 'self',
  });
  parts = [server, worker];
  link = await connectTo(address);
  ({ client } = link);
}, 120_000);
afterAll(async () => {
  await link?.close();
  await supervisor.stop();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

const handleOf = (runId: string) => client.workflow.getHandle<typeof distill>(runId);
const waitOf = async (runId: string) => (await handleOf(runId).query(statusQuery)).waitingFor?.id ?? null;
/** Events in the history of each run: one that does something, be it to look whether somebody came, gets more of them. */
const historyLengths = () => each(async (runId) => (await handleOf(runId).describe()).historyLength);
const allWait = () =>
  expect
    .poll(() => each((runId) => waitOf(runId).catch(() => null)), { timeout: 90_000, interval: 500 })
    .toEqual(RUNS.map(() => 'promotion-1'));

it('50 runs that wait for an approval do nothing at all, and outlive a kill of the server and the worker', async () => {
  const { control: taskQueue } = TASK_QUEUES;
  await each((runId) => client.workflow.start('distill', { taskQueue, workflowId: runId, args: [INPUT, trainedRun(runId, Date.now())] }));
  await allWait();

  const before = await historyLengths();
  const callsBefore = calls();
  const usedBefore = parts.map(used);
  await sleep(WATCHED_MS);
  console.log(`${RUNS.length} waiting runs for ${WATCHED_MS / 1000} s: ${parts.map((part, at) => spent(part, usedBefore[at])).join('; ')}`);
  expect(await historyLengths()).toEqual(before);
  expect(calls()).toEqual(callsBefore);

  const restarts = parts.map((part) => part.restarts);
  for (const { pid } of parts) process.kill(Number(pid), 'SIGKILL');
  await expect.poll(() => parts.map((part) => part.restarts), { timeout: 60_000 }).toEqual(restarts.map((count) => count + 1));
  await allWait();
  expect(calls()).toEqual(callsBefore);

  await each((runId) =>
    handleOf(runId).executeUpdate(decidePromotionUpdate, { args: [{ by: 'tester', approve: true, waitId: 'promotion-1' }] }),
  );
  const outcomes = await each(async (runId) => (await handleOf(runId).result()).outcome);
  expect(outcomes).toEqual(RUNS.map(() => 'promoted'));
  const all = calls();
  expect(new Set(all).size).toBe(all.length);
  const after = all.slice(callsBefore.length).map((line) => line.split(' ')[2]);
  // What was saved gets a long life, since nobody renews it any more.
  expect(after.toSorted()).toEqual(['mirrorRun', 'promoteAdapter', 'tendCheckpoints'].flatMap((name) => RUNS.map(() => name)));
}, 240_000);

type Used = { readonly cpuMs: number; readonly residentMb: number };

/** What a process, and what it started, has used so far (Linux); zeros elsewhere. */
function used({ pid }: Supervised): Used {
  const pids = [Number(pid), ...descendants(Number(pid)).map((child) => child.pid)];
  const read = (file: string) => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return '';
    }
  };
  const ticks = pids
    .map((one) => read(`/proc/${one}/stat`).split(') ')[1]?.split(' ') ?? [])
    .map((fields) => Number(fields[11] ?? 0) + Number(fields[12] ?? 0));
  const residentKb = pids.map((one) => Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${one}/status`))?.[1] ?? 0));
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
  return { cpuMs: sum(ticks) * 10, residentMb: Math.round(sum(residentKb) / 1024) };
}

function spent(part: Supervised, before: Used | undefined): string {
  const now = used(part);
  return `${part.name} ${now.cpuMs - (before?.cpuMs ?? 0)} ms of CPU, ${now.residentMb} MB`;
}
