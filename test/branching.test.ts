import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { MetricsRow } from '../core/measures/metrics-row.ts';
import { PROJECT_ROOT, readEnvironment } from '../services/settings/index.ts';
import { quickTasks } from './keys/setting.ts';
import { resultOf, statusOnce } from './support/answering.ts';
import { CallLogFile } from './support/call-log-file.ts';
import { configWith, forgetRun, type Product, runDirOf, startProduct, startRun } from './support/product.ts';

/** A run is stopped in the middle, and another goes on from what it had learned. */

const [OLD, NEW] = ['branch-old', 'branch-new'];
const KEYS = {
  'train.tasks_per_batch': 4,
  'train.group_size': 2,
  'train.save_state_every': 9,
  'train.trial_concurrency': 8,
  'gate.k': 1,
};
const TASKS = { taskIds: quickTasks('train', /^(copy|move)-/, 4), holdoutTaskIds: quickTasks('holdout', /^delete-/, 3) };
const FOLDER = join(PROJECT_ROOT, '.stillroom/test-runs/branch-input');

let product: Product;
beforeAll(async () => {
  product = await startProduct({ workers: [null] });
  mkdirSync(FOLDER, { recursive: true });
}, 120_000);
afterAll(async () => {
  for (const runId of [OLD, NEW]) if (product) forgetRun(product.settings, runId);
  rmSync(FOLDER, { recursive: true, force: true });
  await product?.[Symbol.asyncDispose]();
}, 60_000);

function written(name: string, text: string): string {
  const path = join(FOLDER, name);
  writeFileSync(path, text);
  return path;
}

/** The `stillroom` command as a person uses it. */
async function stillroom(...args: readonly string[]) {
  const env = { TEMPORAL_ADDRESS: product.stack.address, NO_COLOR: '1' };
  return execa(readEnvironment().node, [join(PROJECT_ROOT, 'client/cli.ts'), ...args], { reject: false, stdin: 'ignore', all: true, env });
}

const startFrom = (from: string) =>
  stillroom(
    ...['start', '--agent', 'turn', '--from', from, '--id', NEW, '--run-dir', runDirOf(NEW), '--yes', '--detach'],
    ...['--config', written('run.toml', configWith({ ...KEYS, 'train.steps': 2 }))],
    ...[
      '--tasks',
      written('train.json', JSON.stringify(TASKS.taskIds)),
      '--holdout',
      written('holdout.json', JSON.stringify(TASKS.holdoutTaskIds)),
    ],
  );

it('a stopped run is gone on from by another', async () => {
  forgetRun(product.settings, NEW);
  const old = await startRun(product, { config: configWith({ ...KEYS, 'train.steps': 5 }), ...TASKS }, OLD);
  await statusOnce(old, ({ step, child }) => step === 1 && child !== null);
  await old.executeUpdate('stop', { args: [{ by: 'a test' }] });
  const { outcome, weights } = await resultOf(old);
  expect([outcome, weights?.statePath]).toEqual(['stopped', expect.stringMatching(/\/weights\/step-0001$/)]);
  const before = new CallLogFile(product.callLogFile).calls().length;

  const refused = await startFrom('no-such-run');
  expect([refused.exitCode, refused.all]).toEqual([2, '--from no-such-run: the store knows no run no-such-run']);
  const started = await startFrom(OLD);
  expect([started.exitCode, started.all]).toEqual([
    0,
    expect.stringContaining(`starts from step-0001 of run ${OLD} (${weights?.statePath})`),
  ]);

  const handle = product.link.client.workflow.getHandle(NEW);
  await statusOnce(handle, ({ branch }) => branch !== null);
  const swept = await stillroom('blobs', 'gc', '--run', OLD);
  expect([swept.exitCode, swept.all]).toEqual([2, `${OLD} is kept: read by ${NEW}`]);

  const result = await resultOf(handle);
  expect(['accepted', 'rejected']).toContain(result.outcome);
  expectOnlyFrom(weights?.statePath ?? '', before, result.weights?.statePath ?? '');
  const rows = readFileSync(join(PROJECT_ROOT, runDirOf(NEW), 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n');
  expect(rows.map((line) => (JSON.parse(line) as MetricsRow).step)).toEqual([1, 2]);
  expect((JSON.parse(rows[0] ?? '') as MetricsRow).sampler).toBe('step-0000');
  expect(result.evaluations.find(({ label }) => label === 'student-before')?.model.kind).toBe('base');
  const record = JSON.parse(readFileSync(join(PROJECT_ROOT, runDirOf(NEW), 'run.json'), 'utf8'));
  expect(record.branch).toMatchObject({ statePath: weights?.statePath, updates: 1, source: { runId: OLD, state: 'step-0001' } });
  expect((await stillroom('status', NEW)).all).toContain(`started from step-0001 of run ${OLD}`);
}, 240_000);

/** The second run made one model: by loading the first one's state, and it sampled from nothing but the base model and what that model saved. */
function expectOnlyFrom(statePath: string, before: number, lastState: string): void {
  const calls = new CallLogFile(product.callLogFile).calls().slice(before);
  expect(calls.filter(({ kind }) => kind === 'create')).toEqual([]);
  expect(calls.filter(({ kind }) => kind === 'load').map(({ weights, failed }) => [weights, failed])).toEqual([[statePath, null]]);
  const model = calls.find(({ kind }) => kind === 'load')?.owner ?? '';
  expect(lastState).toBe(`tinker://${model}/weights/step-0002`);
  const sampled = new Set(calls.flatMap(({ kind, weights }) => (kind === 'sample' && weights?.startsWith('tinker:') ? [weights] : [])));
  expect([...sampled].sort()).toEqual([0, 1, 2].map((step) => `tinker://${model}/sampler_weights/step-000${step}`));
  expect(calls.filter(({ kind }) => kind === 'optim_step').map(({ owner }) => owner)).toEqual([model, model]);
}
