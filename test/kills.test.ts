import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { seededRandom, seedFromName } from '../core/random/seeded.ts';
import type { RunResult, RunStatus, TrialProgress } from '../workflows/messages.ts';
import { type Product, SHORT, startProduct, startQuickstart, told } from './support/product.ts';

/** Trials that must be in flight when something is killed, and how long after that the kill comes at most. */
const IN_FLIGHT = 4;
const LONGEST_DELAY_MS = 2_000;
const TARGETS = ['worker', 'trainer', 'temporal'] as const;

let product: Product;
beforeAll(async () => {
  product = await startProduct({ workers: [null] });
}, 120_000);
afterAll(() => product?.[Symbol.asyncDispose](), 60_000);

it('SIGKILL of the worker, the trainer and the Temporal server, each in mid-batch: the run goes on by itself and the gate accepts', async () => {
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
  for (;;) {
    const step = await stepInFlight(handle).catch(() => null); // the server may be down just now
    if (step !== null && !seen.has(step)) return step;
    await sleep(100);
  }
}

async function stepInFlight(handle: WorkflowHandle): Promise<number | null> {
  const { child, step, outcome } = await handle.query<RunStatus>('status');
  if (outcome !== null) throw new Error(`the run ended (${outcome}) before all kills`);
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
  let completed = 0;
  let again = 0;
  const children = [
    ...Array.from({ length: 8 }, (_, i) => `step-${String(i + 1).padStart(4, '0')}`),
    'eval-teacher',
    'eval-student-before',
    'eval-student-after',
  ];
  for (const child of children) {
    const { events } = await product.link.client.workflow.getHandle(`${runId}.${child}`).fetchHistory();
    const trials = new Set<string>();
    for (const event of events ?? []) {
      const scheduled = event.activityTaskScheduledEventAttributes;
      if (scheduled?.activityType?.name === 'runTrial') trials.add(String(event.eventId));
      const started = event.activityTaskStartedEventAttributes;
      if (started && trials.has(String(started.scheduledEventId))) again += (started.attempt ?? 1) - 1;
      const done = event.activityTaskCompletedEventAttributes;
      if (done && trials.has(String(done.scheduledEventId))) completed++;
    }
  }
  return { completed, again };
}
