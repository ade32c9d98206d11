import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { worker } from '../client/stack/parts.ts';
import type { SentTokens } from '../core/measures/usage.ts';
import { readEnvironment } from '../services/settings/index.ts';
import type { RunStatus, TrialProgress } from '../workflows/messages.ts';
import { answered, quickTasks } from './keys/setting.ts';
import { playedTrials } from './keys/trials.ts';
import { AlteringProxy } from './support/altering-proxy.ts';
import { CallLogFile, countedTokens } from './support/call-log-file.ts';
import { descendants, leftOf, type Process, processes, scratchDirs } from './support/process-tree.ts';
import { configWith, type Product, startProduct, startRun, TRAINER_KEY } from './support/product.ts';
import { trialsOf } from './support/trial-attempts.ts';

/** A model call takes so long that most of a trial's time is in one. */
const CALL_MS = 700;
const AT_ONCE = 6;

const KEYS = {
  'train.steps': 1,
  'train.tasks_per_batch': 3,
  'train.group_size': 2,
  'train.trial_concurrency': AT_ONCE,
  'gate.k': 2,
};

/** A worker process of its own, found by its pid. */
class Worker {
  readonly process: ChildProcess;
  readonly pid: number;
  readonly exited: Promise<void>;

  private constructor(process: ChildProcess, pid: number) {
    this.process = process;
    this.pid = pid;
    this.exited = new Promise((resolve) => process.once('exit', () => resolve()));
  }

  static async start({ stack, stateDir }: Product, roles: string, trainerUrl: string): Promise<Worker> {
    const [host, port] = stack.address.split(':');
    const environment = readEnvironment();
    const options = {
      stateDir,
      port: Number(port),
      uiPort: 0,
      dbFile: '',
      trainerPort: null,
      workers: [],
      environment,
      drainSeconds: 10,
      metricsPort: null,
    };
    const { command, args, env } = worker(0, roles, options);
    const reach = { TEMPORAL_ADDRESS: `${host}:${port}`, TINKER_BASE_URL: trainerUrl, TINKER_API_KEY: TRAINER_KEY };
    const child = spawn(command, [...args], { env: { ...process.env, ...env, ...reach }, stdio: ['ignore', 'pipe', 'inherit'] });
    for await (const line of createInterface({ input: child.stdout })) if (line.includes('"ready"')) break;
    if (child.pid === undefined) throw new Error('the worker could not be started');
    return new Worker(child, child.pid);
  }

  /** Itself and everything that it started, with the folders that they use. */
  family(): { readonly members: Process[]; readonly folders: string[] } {
    const all = processes();
    const members = [...all.filter(({ pid }) => pid === this.pid), ...descendants(this.pid, all)];
    return { members, folders: scratchDirs(members) };
  }

  /** Ends it as a person does, if it runs. */
  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    if (this.process.exitCode === null && this.process.signalCode === null) await this.exited;
  }
}

let product: Product;
let proxy: AlteringProxy;
const workers: Worker[] = [];
const started = async (roles: string) => {
  const started = await Worker.start(product, roles, proxy.url);
  workers.push(started);
  return started;
};
beforeAll(async () => {
  product = await startProduct({ workers: [] });
  proxy = await AlteringProxy.start(String(product.stack.trainerUrl));
}, 120_000);
afterAll(async () => {
  await Promise.all(workers.map((worker) => worker.stop()));
  await proxy?.[Symbol.asyncDispose]();
  await product?.[Symbol.asyncDispose]();
}, 60_000);

it('trials of a worker that is killed, or told to end, are taken over: their calls are answered from their records, and nothing is left', async () => {
  proxy.faults = { delayMs: ({ prompt_logprobs: isScore }) => (isScore ? 0 : CALL_MS) };
  await started('control,training');
  const first = await started('rollouts');
  const [taskIds, holdoutTaskIds] = [quickTasks('train', /./, 3), quickTasks('holdout', /./, AT_ONCE)];
  const handle = await startRun(product, { config: configWith(KEYS), taskIds, holdoutTaskIds }, 'takeover');
  const ended = answered(handle);
  ended.catch(() => {});
  const evaluation = `${handle.workflowId}.eval-teacher`;

  await inMidTrial(evaluation);
  const killed = first.family();
  first.process.kill('SIGKILL');
  const second = await started('rollouts');
  await started('rollouts');
  await inMidTrial(evaluation);
  const told = second.family();
  const toldAtMs = performance.now();
  second.process.kill('SIGTERM');
  await second.exited;
  const endedInMs = performance.now() - toldAtMs;
  await product.link.client.workflow.getHandle(evaluation).result();
  proxy.faults = {};

  const { client } = product.link;
  const trials = (await playedTrials(client, evaluation)).trials.map(({ summary }) => summary);
  const attempts = await trialsOf(client, evaluation);
  const total = (key: 'replayedTokens' | 'reboughtTokens') => trials.reduce((sum, trial) => sum + trial[key], 0);
  const lost = trials.flatMap((trial) => trial.lost);
  const figures = { replayed: total('replayedTokens'), rebought: total('reboughtTokens'), lost: lost.length };
  console.log(`${attempts.filter(({ attempts }) => attempts > 1).length} trials taken over: ${JSON.stringify(figures)}`);
  console.log(`after SIGTERM the worker ended in ${Math.round(endedInMs)} ms`);
  expect(attempts.filter(({ completedAtMs }) => completedAtMs !== null)).toHaveLength(AT_ONCE * KEYS['gate.k']);
  expect(figures.replayed).toBeGreaterThan(0);
  expect(figures.rebought).toBe(0);
  // SIGKILL cost the call in flight of each trial, SIGTERM none: those were waited for.
  expect(lost.length).toBeLessThanOrEqual(AT_ONCE);
  expect(new Set(lost.map(({ of }) => of)).size).toBe(lost.length);
  expect(endedInMs).toBeLessThan(10_000);

  // What the service counted beyond our books are the lost calls; each of them may have been counted, or not.
  const { outcome } = await ended;
  expect(outcome).toMatch(/accepted|rejected/);
  const { usage } = await handle.query<RunStatus>('status');
  expect(usage.lost).toEqual(expect.arrayContaining(lost));
  const beyond = difference(countedByTrainer(), usage.sent);
  console.log(`beyond our books: ${JSON.stringify(beyond)}; lost in all: ${usage.lost.length}`);
  expect(beyond).toMatchObject({ scoredTokens: 0, trainedTokens: 0 });
  for (const key of ['promptTokens', 'sampledTokens'] as const) {
    expect(beyond[key]).toBeGreaterThanOrEqual(0);
    expect(beyond[key]).toBeLessThanOrEqual(usage.lost.reduce((sum, call) => sum + call[key], 0));
  }

  for (const { members, folders } of [killed, told]) {
    expect(members.length).toBeGreaterThan(1);
    await expect.poll(() => leftOf(members, []), { timeout: 10_000 }).toEqual([]);
    expect(folders.length).toBeGreaterThan(0);
    expect(folders.filter((folder) => existsSync(folder))).toEqual([]);
  }
}, 240_000);

/** Waits until trials run, and most of them have had an answer since. */
async function inMidTrial(workflowId: string): Promise<void> {
  const child = product.link.client.workflow.getHandle(workflowId);
  const running = async () => (await child.query<TrialProgress>('progress').catch(() => null))?.running ?? 0;
  await expect.poll(running, { timeout: 120_000, interval: 50 }).toBeGreaterThan(1);
  const before = lines().length;
  await expect.poll(() => lines().length - before, { timeout: 60_000, interval: 50 }).toBeGreaterThan(AT_ONCE);
}

/** What the trainer wrote down of every call that it carried out. */
const lines = () => new CallLogFile(product.callLogFile).calls();
const countedByTrainer = () => countedTokens(lines());

function difference(counted: SentTokens, booked: SentTokens): SentTokens {
  return {
    promptTokens: counted.promptTokens - booked.promptTokens,
    sampledTokens: counted.sampledTokens - booked.sampledTokens,
    scoredTokens: counted.scoredTokens - booked.scoredTokens,
    trainedTokens: counted.trainedTokens - booked.trainedTokens,
  };
}
