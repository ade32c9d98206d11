import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { generateQuickstart } from '../examples/quickstart/generate.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import type { RunResult, RunStatus } from '../workflows/messages.ts';
import { CallLogFile, countedTokens } from './support/call-log-file.ts';
import { faultReports, on, putFaults } from './support/faults.ts';
import { configWith, type Product, startProduct, startRun, startWorkerHere } from './support/product.ts';
import { TrainerFixture } from './trainer-fixture.ts';

const logs = mkdtempSync(join(tmpdir(), 'stillroom-billing-'));
const callLog = join(logs, 'calls.jsonl');
let product: Product;
let fixture: TrainerFixture;
let worker: AsyncDisposable;
beforeAll(async () => {
  [product, fixture] = await Promise.all([
    startProduct({ workers: [] }),
    TrainerFixture.start({ faults: '-', env: { STILLROOM_TRAINER_CALL_LOG: callLog } }),
  ]);
  worker = await startWorkerHere(product, { trainerUrl: fixture.trainer.url });
}, 120_000);
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await Promise.all([product?.[Symbol.asyncDispose](), fixture?.stop()]);
  rmSync(logs, { recursive: true });
}, 60_000);

const STEPS = 2;
const KEYS = { 'train.steps': STEPS, 'train.tasks_per_batch': 2, 'train.group_size': 2, 'train.save_state_every': 1, 'gate.k': 1 };

/** The service's own untrained weights: nothing is learned here, and the gate may say what it likes. */
async function startSmall(keys: Readonly<Record<string, unknown>>, runId: string) {
  const { trainIds, holdoutIds } = generateQuickstart(join(PROJECT_ROOT, '.stillroom/quickstart'));
  const config = configWith({ ...KEYS, 'tripwire.enabled': false, ...keys });
  return startRun(product, { config, taskIds: trainIds.slice(0, 4), holdoutTaskIds: holdoutIds.slice(0, 2) }, runId);
}

/** Answers every question with a message; returns the kinds that were asked. */
async function answering(handle: Awaited<ReturnType<typeof startSmall>>, answers: Readonly<Record<string, readonly [string, object]>>) {
  const asked: string[] = [];
  let ended = false;
  const ending = handle.result().finally(() => {
    ended = true;
  });
  ending.catch(() => {});
  while (!ended) {
    const { waitingFor } = await handle.query<RunStatus>('status');
    if (waitingFor) {
      asked.push(waitingFor.kind);
      const [name, more] = answers[waitingFor.kind] ?? ['stop', {}];
      await handle.executeUpdate(name, { args: [{ by: 'test', waitId: waitingFor.id, ...more }] });
    }
    await sleep(100);
  }
  return { asked, result: (await ending) as RunResult };
}

const UNPAID = { kind: 'status', status: 402, detail: 'top up' } as const;
/** Optimizer updates that the trainer carried out, by its own log. */
const updatesDone = () => new CallLogFile(callLog).calls().filter(({ kind, failed }) => kind === 'optim_step' && failed === null).length;

it('a service that wants payment again and again: the run waits each time, goes on where it was, and each update is made once', async () => {
  // Of trials: the first calls of fresh weights, between them, wait for nobody's payment.
  await putFaults(
    fixture.trainer.url,
    on('asample', UNPAID, { nth: 12 }),
    on('retrieve_future', UNPAID, { for: 'Sample', nth: 40 }),
    on('retrieve_future', UNPAID, { for: 'Sample', nth: 70 }),
    on('forward_backward', UNPAID),
    on('retrieve_future', UNPAID, { for: 'OptimStep', nth: 2 }),
    on('save_weights', UNPAID),
  );
  const handle = await startSmall({}, 'billing');
  const { asked, result } = await answering(handle, { teacher: ['continueAnyway', {}], billing: ['resume', {}] });
  const reports = await faultReports(fixture.trainer.url);
  console.log(`asked ${asked.join(', ')}; ${result.outcome}; spent $${result.spend.usd.toFixed(6)}`);
  expect(['accepted', 'rejected']).toContain(result.outcome);
  expect(reports.map(({ fired }) => fired)).toEqual([1, 1, 1, 1, 1, 1]);
  expect(asked.filter((kind) => kind === 'billing')).toHaveLength(6);
  expect(updatesDone()).toBe(STEPS);
  // What is refused is not lost, and what the service kept back was waited for: each token that it counted is booked, once.
  expect([result.spend.lostCalls, countedTokens(new CallLogFile(callLog).calls())]).toEqual([0, result.spend.sent]);
  expect(result.spend.sent.trainedTokens).toBe(result.spend.lines.find(({ meter }) => meter === 'student_train')?.tokens);
}, 300_000);

it('a limit for a trial ends it inside the gateway; it is graded as it stands, and no trial of the run costs more', async () => {
  await putFaults(fixture.trainer.url);
  const limitUsd = 1e-4;
  const handle = await startSmall({ 'budget.max_usd_per_trial': limitUsd }, 'trial-limit');
  const { result } = await answering(handle, { teacher: ['continueAnyway', {}], billing: ['stop', {}] });
  const { lastRow } = await handle.query<RunStatus>('status');
  console.log(`${result.outcome}; stop reasons ${JSON.stringify(lastRow?.stop_reason_counts)}`);
  expect(lastRow?.executed_trials).toBe(4);
  expect(lastRow?.stop_reason_counts.usd_limit).toBeGreaterThan(0);
  expect(lastRow?.usd).toBeLessThanOrEqual(4 * limitUsd + 1e-12);
  expect(result.evaluations.map(({ trialUsd }) => (trialUsd ?? 1) <= limitUsd + 1e-12)).toEqual([true, true, true]);
}, 300_000);
