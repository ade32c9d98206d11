import { setTimeout as sleep } from 'node:timers/promises';
import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { seededRandom, seedFromName } from '../core/random/seeded.ts';
import { stepName } from '../core/run/step-name.ts';
import type { RunResult, RunStatus, TrialProgress } from '../workflows/messages.ts';
import { type Product, SHORT, startProduct, startQuickstart, told } from './support/product.ts';
import { trialsOf } from './support/trial-attempts.ts';

/** Trials that must be in flight when something is killed, and how long after that the kill comes at most. */
const IN_FLIGHT = 4;
const LONGEST_DELAY_MS = 2_000;
const TARGETS = ['worker', 'trainer', 'temporal'] as const;

let product: Product;
beforeAll(async () => {
  product = await startProduct({ workers: [null] });
}, 120_000);
afterAll(() => product?.[Symbol.asyncDispose](), 60_000);

it('SIGKILL of the worker, the trainer and the Temporal server, each in mid-batch, and of all during a pause: the run goes on and the gate accepts', async () => {
  const random = seededRandom(seedFromName('kills'));
  const handle = await startQuickstart(product, SHORT, 'kills');
  const steps = new Set<number>();
  for (const target of TARGETS) {
    const step = await trialsInFlight(handle, steps);
    steps.add(step);
    await sleep(random.below(LONGEST_DELAY_MS));
    await killed(target);
    console.log(`killed the ${target} in step ${step}`);
  }
  await pausedThrough(handle, steps);
  const result = (await handle.result()) as RunResult;
  const status = await handle.query<RunStatus>('status');
  console.log(`after three kills: ${told({ result, status })}`);
  expect(result.outcome).toBe('accepted');

  const trials = await trialAttempts(result.runId);
  const planned = 3 * 2 * 48 + 8 * 16 * 4;
  expect(trials.completed).toBe(planned);
  expect(trials.again).toBeLessThanOrEqual(TARGETS.length * product.settings.workers.rolloutSlots);
}, 900_000);

/** Waits for a step, none of `seen`, with enough trials in flight. */
async function trialsInFlight(handle: WorkflowHandle, seen: ReadonlySet<number>): Promise<number> {
  let failure: Error | null = null;
  handle.result().then(
    () => {
      failure = new Error('the run ended before all kills');
    },
    (error) => {
      if (error instanceof WorkflowFailedError) failure = error;
    },
  );
  for (;;) {
    if (failure) throw failure;
    const step = await stepInFlight(handle).catch(() => null); // the server may be down just now
    if (step !== null && !seen.has(step)) return step;
    await sleep(100);
  }
}

/** Pauses the run in mid-step, kills everything while it waits, and lets it go on: nothing of it has changed meanwhile. */
async function pausedThrough(handle: WorkflowHandle, seen: ReadonlySet<number>): Promise<void> {
  const step = await trialsInFlight(handle, seen);
  await handle.executeUpdate('pause', { args: [{ by: 'the test' }] });
  const status = async () => {
    const { waitingFor, step, child, usage, decisions } = await handle.query<RunStatus>('status');
    return { waitingFor, step, child, usage, decisions };
  };
  await expect.poll(async () => (await status()).waitingFor?.id, { timeout: 60_000 }).toBe('pause-1');
  const before = await status();
  expect([before.step, before.child]).toEqual([step, null]);
  await Promise.all(TARGETS.map(killed));
  await expect.poll(() => status().catch(() => null), { timeout: 60_000 }).toEqual(before);
  await handle.executeUpdate('resume', { args: [{ by: 'the test', waitId: 'pause-1' }] });
  console.log(`paused after step ${step}, killed all, and resumed`);
}

async function stepInFlight(handle: WorkflowHandle): Promise<number | null> {
  const { child, step } = await handle.query<RunStatus>('status');
  if (!child?.label.startsWith('step')) return null;
  const progress = await product.link.client.workflow.getHandle(child.workflowId).query<TrialProgress>('progress');
  return progress.running >= IN_FLIGHT && progress.done > 0 ? step + 1 : null;
}

async function killed(name: string): Promise<void> {
  const target = product.stack.processes.find((process) => process.name === name);
  if (!target?.pid) throw new Error(`no running process ${name}`);
  const { pid, restarts } = target;
  process.kill(pid, 'SIGKILL');
  await expect.poll(() => target.restarts, { timeout: 60_000 }).toBeGreaterThan(restarts);
}

/** Over all children of a run: trials that completed, and attempts beyond each one's first. */
async function trialAttempts(runId: string): Promise<{ completed: number; again: number }> {
  const steps = Array.from({ length: 8 }, (_, i) => stepName(i + 1));
  const children = [...steps, 'eval-teacher', 'eval-student-before', 'eval-student-after'];
  const trials = (await Promise.all(children.map((child) => trialsOf(product.link.client, `${runId}.${child}`)))).flat();
  return {
    completed: trials.filter(({ completedAtMs }) => completedAtMs !== null).length,
    again: trials.reduce((sum, { attempts }) => sum + attempts - 1, 0),
  };
}
