import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stepName } from '../core/run/step-name.ts';
import type { RunMetrics, RunResult, RunStatus } from '../workflows/messages.ts';
import { type Product, SHORT, startProduct, startQuickstart } from './support/product.ts';
import { TemporalShell } from './support/temporal-cli.ts';
import { trialsOf } from './support/trial-attempts.ts';

/** Workers of one role each, in the order in which they are started: their processes are `worker`, `worker-2` and `worker-3`. */
const ROLES = ['control', 'rollouts', 'training'] as const;
const ROLLOUTS = 'worker-2';

/** Less than the quickstart's gate asks for: this is about the workers. */
const KEYS = { ...SHORT, 'train.steps': 2, 'gate.k': 1 };
const STEP_TRIALS = 16 * 4;

/** A trial that the server gives out in the moment in which the worker stops asking is missed by its heartbeat; it had not begun. */
const MISSED = 1;

let product: Product;
beforeAll(async () => {
  product = await startProduct({ workers: ROLES, metrics: true });
}, 120_000);
afterAll(() => product?.[Symbol.asyncDispose](), 60_000);

it('three workers of one role each finish a run, one of them drained in mid-step by SIGTERM: no trial is run again but those in flight, and no call is lost', async () => {
  const handle = await startQuickstart(product, KEYS, 'roles');
  const { metricsPort } = product;
  if (metricsPort === null) throw new Error('the workers serve metrics');

  await inStep(1, handle);
  const before = await trialsInFlight(metricsPort + ROLES.indexOf('rollouts'));
  const drained = await drain(ROLLOUTS);
  expect(sampleOf(before, 'stillroom_tokens{', 'meter="student_sample"')).toBeGreaterThan(0);
  expect(sampleOf(before, 'temporal_worker_task_slots_available{', 'task_queue="stillroom-rollouts"')).toBeGreaterThanOrEqual(0);
  expect(sampleOf(await metricsAt(metricsPort), 'temporal_workflow_task_execution_latency_count{')).toBeGreaterThan(0);
  console.log(`drained: ${drained.join(' | ')}`);

  const result = (await handle.result()) as RunResult;
  const status = await handle.query<RunStatus>('status');
  expect(result.outcome).toMatch(/^(accepted|rejected)$/);
  expect(status.step).toBe(2);
  const trials = (await Promise.all([1, 2].map((step) => trialsOf(product.link.client, `roles.${stepName(step)}`)))).flat();
  expect(trials.filter(({ completedAtMs }) => completedAtMs !== null)).toHaveLength(2 * STEP_TRIALS);
  const again = trials.filter(({ attempts }) => attempts > 1);
  const { rows } = await handle.query<RunMetrics>('metrics');
  const sum = (key: 'lost_calls' | 'replayed_tokens') => rows.reduce((total, row) => total + row[key], 0);
  console.log(`${again.length} trials went to the successor: ${sum('replayed_tokens')} tokens replayed, ${sum('lost_calls')} calls lost`);
  expect(again.length).toBeLessThanOrEqual(inFlight(drained) + MISSED);
  expect(sum('lost_calls')).toBe(0);
}, 400_000);

it('the workers are listed with their queues', async () => {
  using shell = new TemporalShell(product.stack.address);
  for (const queue of Object.values(product.settings.taskQueues))
    await expect
      .poll(() => shell.must('temporal worker list'), { timeout: 30_000, interval: 2_000 })
      .toMatch(new RegExp(`Running +${queue} `));
}, 100_000);

async function inStep(step: number, handle: WorkflowHandle): Promise<void> {
  const label = () => handle.query<RunStatus>('status').then(({ child }) => child?.label);
  await expect.poll(label, { timeout: 300_000, interval: 50 }).toBe(`step ${step}`);
}

/** Waits until a worker has trials behind it and enough in flight, by its own metrics, and returns these. */
async function trialsInFlight(port: number): Promise<string> {
  const endedBefore = sampleOf(await metricsAt(port), 'stillroom_trials{') || 0;
  for (;;) {
    const metrics = await metricsAt(port);
    if (sampleOf(metrics, 'stillroom_trials_running{') >= 3 && sampleOf(metrics, 'stillroom_trials{') > endedBefore) return metrics;
    await sleep(50);
  }
}

/** Sends SIGTERM to a worker, waits until its successor serves, and returns what the worker said of its end. */
async function drain(name: string): Promise<string[]> {
  const worker = product.stack.processes.find((process) => process.name === name);
  if (!worker?.pid) throw new Error(`no running process ${name}`);
  const { restarts, logFile } = worker;
  const logged = readFileSync(logFile, 'utf8').length;
  process.kill(worker.pid, 'SIGTERM');
  await expect.poll(() => worker.restarts, { timeout: 60_000 }).toBeGreaterThan(restarts);
  const lines = readFileSync(logFile, 'utf8').slice(logged).split('\n');
  expect(lines).toContainEqual(expect.stringMatching(/^SIGTERM: no new work; up to 10 s for runTrial × \d+\. Again: end at once$/));
  expect(lines).toContainEqual(`--- ${name} ended: exit code 0`);
  return lines.filter((line) => /no new work|are over/.test(line));
}

/** How many trials a worker had in flight when it was told to end. */
const inFlight = (lines: readonly string[]) => Number(/runTrial × (\d+)/.exec(lines.join('\n'))?.[1] ?? 0);

const metricsAt = async (port: number) => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();

/** The value of the first sample whose line begins so and contains `part`; NaN without one. */
function sampleOf(metrics: string, start: string, part = ''): number {
  const line = metrics.split('\n').find((it) => it.startsWith(start) && it.includes(part));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}
