import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { StoredHarness } from '../core/run/harness-document.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import { HarnessStore } from '../services/stores/harness-store.ts';
import type { RunStatus } from '../workflows/messages.ts';
import { answered, quickTasks } from './keys/setting.ts';
import { configWith, forgetRun, type Product, runDirOf, startProduct, startWorkerHere } from './support/product.ts';

const RUN_ID = 'pinned';
const INPUTS = join(PROJECT_ROOT, '.stillroom/test-inputs');
const KEYS = {
  'train.steps': 2,
  'train.tasks_per_batch': 2,
  'train.group_size': 2,
  'train.save_state_every': 9,
  'gate.k': 1,
  'harbor.job_template': '.stillroom/test-inputs/job.json',
};
const TRAIN = quickTasks('train', /^(copy|move)-/, 2);
const HOLDOUT = quickTasks('holdout', /^delete-/, 2);

let product: Product;
let worker: AsyncDisposable;
beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  product = await startProduct({ workers: [] });
  worker = await startWorkerHere(product, {});
}, 120_000);
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await product?.[Symbol.asyncDispose]();
}, 60_000);

function write(name: string, text: string): string {
  mkdirSync(INPUTS, { recursive: true });
  writeFileSync(join(INPUTS, name), text);
  return join('.stillroom/test-inputs', name);
}

async function until(handle: WorkflowHandle, kind: string): Promise<RunStatus> {
  await expect
    .poll(async () => (await handle.query<RunStatus>('status')).waitingFor?.kind ?? null, { timeout: 60_000, interval: 100 })
    .toBe(kind);
  return handle.query<RunStatus>('status');
}

it('a run that waits is not changed by what becomes of its files: agent, backend, splits, job template and config', async () => {
  forgetRun(product.settings, RUN_ID);
  const template = readFileSync(join(PROJECT_ROOT, 'examples/quickstart/job.json'), 'utf8');
  write('job.json', template);
  const harnesses = new HarnessStore(join(product.stateDir, 'harnesses'), StoredHarness);
  const stored = await harnesses.save({ runtime: 'turn', kwargs: {} }, { name: 'mine', key: 'first' });
  const input = {
    agent: 'mine@v1',
    config: write('run.toml', configWith(KEYS)),
    taskIds: write('train.json', JSON.stringify(TRAIN)),
    holdoutTaskIds: write('holdout.json', JSON.stringify(HOLDOUT)),
    runDir: runDirOf(RUN_ID),
  };
  const order = { taskQueue: product.settings.taskQueues.control, workflowId: RUN_ID, args: [input] };
  const handle = await product.link.client.workflow.start('distill', order);
  const before = await until(handle, 'cost');
  expect(before.spend.usd).toBe(0);

  write('run.toml', configWith({ ...KEYS, 'train.steps': 1, 'train.group_size': 1, 'harbor.backend': 'e2b' }));
  write('train.json', JSON.stringify(HOLDOUT));
  write('holdout.json', JSON.stringify(TRAIN));
  write('job.json', '{}');
  writeFileSync(join(stored.path, 'doc.json'), JSON.stringify({ runtime: 'another' }));
  await handle.executeUpdate('confirmCost', { args: [{ by: 'the test' }] });

  const result = await answered(handle);
  const after = await handle.query<RunStatus>('status');
  expect(['accepted', 'rejected']).toContain(result.outcome);
  expect(after).toMatchObject({ agent: 'mine@v1', step: 2, lastRow: { trials: 4, tasks: 2 } });
  expect(result.evaluations.map(({ perTask }) => perTask.map(({ taskId }) => taskId).sort())).toEqual(
    Array.from({ length: 3 }, () => [...HOLDOUT].sort()),
  );
}, 180_000);

it('its name is used up: a second run of it is refused, whatever it asks for', async () => {
  const order = { taskQueue: product.settings.taskQueues.control, workflowId: RUN_ID };
  const input = { agent: 'turn', config: configWith(KEYS), taskIds: TRAIN, holdoutTaskIds: HOLDOUT };
  write('job.json', readFileSync(join(PROJECT_ROOT, 'examples/quickstart/job.json'), 'utf8'));
  const again = await product.link.client.workflow.start('distill', { ...order, args: [input] });
  await expect(again.result()).rejects.toMatchObject({ cause: { type: 'BadRunInput', message: expect.stringContaining(RUN_ID) } });
}, 60_000);
