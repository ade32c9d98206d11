import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { addUsage } from '../core/measures/usage.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import type { RunStatus, TrialProgress } from '../workflows/messages.ts';
import { answered, quickTasks } from './keys/setting.ts';
import { AlteringProxy } from './support/altering-proxy.ts';
import { CallLogFile, countedTokens } from './support/call-log-file.ts';
import { descendants, leftOf, processes, scratchDirs } from './support/process-tree.ts';
import { configWith, type Product, runDirOf, startProduct, startRun, startWorkerHere } from './support/product.ts';
import { TemporalShell } from './support/temporal-cli.ts';

/** A model call takes so long that a trial which is broken off is in one. */
const CALL_MS = 500;
const KEYS = {
  'train.steps': 9,
  'train.tasks_per_batch': 2,
  'train.group_size': 2,
  'train.trial_concurrency': 4,
  'train.save_state_every': 9,
  'gate.k': 1,
};

let product: Product;
let proxy: AlteringProxy;
let worker: AsyncDisposable;
let slow = false;
beforeAll(async () => {
  Runtime.install({ logger: new DefaultLogger('ERROR') });
  product = await startProduct({ workers: [] });
  proxy = await AlteringProxy.start(String(product.stack.trainerUrl));
  proxy.faults = { delayMs: ({ prompt_logprobs: isScore }) => (slow && !isScore ? CALL_MS : 0) };
  worker = await startWorkerHere(product, { trainerUrl: proxy.url });
}, 120_000);
afterAll(async () => {
  await worker?.[Symbol.asyncDispose]();
  await proxy?.[Symbol.asyncDispose]();
  await product?.[Symbol.asyncDispose]();
}, 60_000);

it('a run that is stopped in mid-trials, and one that is cancelled, leave no sandbox; all they trained is saved, all they took is booked', async () => {
  using shell = new TemporalShell(product.stack.address);
  const seen: string[] = [];
  const brokenOff = async (runId: string, how: (handle: WorkflowHandle) => Promise<unknown>) => {
    const tasks = { taskIds: quickTasks('train', /./, 2), holdoutTaskIds: quickTasks('holdout', /./, 2) };
    const handle = await startRun(product, { config: configWith(KEYS), ...tasks }, runId);
    const ended = answered(handle).then(
      ({ outcome }) => outcome,
      (error) => error.cause?.name,
    );
    await inMidTrials(handle);
    seen.push(...sandboxesNow());
    await how(handle);
    return [await ended, await handle.query<RunStatus>('status')] as const;
  };
  const [[stopped, first], [cancelled, second]] = await Promise.all([
    brokenOff('stops-stop', (handle) => handle.executeUpdate('stop', { args: [{ by: 'the test' }] })),
    brokenOff('stops-cancel', ({ workflowId }) => shell.must(`temporal workflow cancel --workflow-id ${workflowId}`)),
  ]);
  expect([stopped, cancelled]).toEqual(['stopped', 'CancelledFailure']);

  // Each trial has a folder of the runner's and one of the worker's; what runs in a sandbox has its path in its command.
  expect(seen.length).toBeGreaterThan(2 * 2);
  expect(sandboxesNow()).toEqual([]);
  expect(leftOf([], seen)).toEqual([]);

  for (const status of [first, second]) {
    const { step, weights, resume, checkpoints } = status;
    expect(status).toMatchObject({ outcome: 'stopped', phase: 'ended', child: null, waitingFor: null });
    expect([resume.latest?.step, resume.latest?.statePath]).toEqual([step, weights?.statePath]);
    expect(checkpoints.saved).toBeGreaterThan(0);
    const read = (name: string) => readFileSync(join(PROJECT_ROOT, runDirOf(status.runId), name), 'utf8');
    expect(JSON.parse(read('status.json'))).toMatchObject({ phase: 'ended', outcome: 'stopped', step });
    expect(read('metrics.jsonl').trim().split('\n')).toHaveLength(step);
    expect(read('checkpoints.json')).toContain(weights?.statePath);
  }

  // What the service counted beyond our books are calls without an answer; each of them may have been counted, or not.
  const { sent, lost } = addUsage(first.usage, second.usage);
  const counted = countedTokens(new CallLogFile(product.callLogFile).calls());
  const most = (key: 'promptTokens' | 'sampledTokens') => lost.reduce((sum, call) => sum + call[key], 0);
  console.log(`counted ${JSON.stringify(counted)}, booked ${JSON.stringify(sent)}, lost ${lost.length}`);
  expect(counted).toMatchObject({ scoredTokens: sent.scoredTokens, trainedTokens: sent.trainedTokens });
  for (const key of ['promptTokens', 'sampledTokens'] as const) {
    expect(counted[key]).toBeGreaterThanOrEqual(sent[key]);
    expect(counted[key]).toBeLessThanOrEqual(sent[key] + most(key));
  }
}, 240_000);

/** What a harbor runner keeps in its folder as long as it lives. */
const ITS_OWN = /^(lock|owner\.json|cgroups|etc-.+)$/;

/** Folders of trials and of their sandboxes, as they are now. */
function sandboxesNow(): string[] {
  const all = processes();
  const family = [...all.filter(({ pid }) => pid === process.pid), ...descendants(process.pid, all)];
  return scratchDirs(family).flatMap((folder) =>
    readdirSync(folder)
      .filter((name) => !ITS_OWN.test(name))
      .map((name) => join(folder, name)),
  );
}

/** Waits until trials of a step after the first run, with calls under way. */
async function inMidTrials(handle: WorkflowHandle): Promise<void> {
  const running = async () => {
    const { child, step } = await handle.query<RunStatus>('status');
    if (step === 0 || !child?.label.startsWith('step')) return 0;
    slow = true;
    const progress = await product.link.client.workflow
      .getHandle(child.workflowId)
      .query<TrialProgress>('progress')
      .catch(() => null);
    return progress?.running ?? 0;
  };
  await expect.poll(running, { timeout: 120_000, interval: 100 }).toBeGreaterThan(1);
  await expect.poll(() => sandboxesNow().length, { timeout: 20_000, interval: 100 }).toBeGreaterThan(2);
}
