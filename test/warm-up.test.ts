import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { MetricsRow } from '../core/measures/metrics-row.ts';
import { solveRateOf } from '../core/measures/rates.ts';
import { TRAJECTORY_FILE, type TrajectoryDocument } from '../core/run/trajectory-file.ts';
import type { WarmupRow } from '../core/run/warm-up.ts';
import { PROJECT_ROOT } from '../services/settings/index.ts';
import { type Keys, type Product, runQuickstart, startProduct } from './support/product.ts';
import { trialsOf } from './support/trial-attempts.ts';

const TRAIN_TASKS = 32;
const TRIALS = 2 * TRAIN_TASKS;
const UPDATES = 8;
/** One small step after the warm-up, which shows what the student can do when it begins; so warm that the teacher fails now and then. */
const ONE_STEP = {
  'sampling.temperature': 1.3,
  'train.steps': 1,
  'train.tasks_per_batch': 16,
  'train.learning_rate': 6e-3,
  'gate.k': 1,
  'warmup.steps': UPDATES,
};

let product: Product;
beforeAll(async () => {
  product = await startProduct({ workers: [null] });
}, 120_000);
afterAll(() => product?.[Symbol.asyncDispose](), 60_000);

async function run(runId: string, keys: Keys) {
  const { status } = await runQuickstart(product, { ...ONE_STEP, ...keys }, runId, TRAIN_TASKS);
  const file = (name: string) => readFileSync(join(PROJECT_ROOT, status.runDir ?? '', name), 'utf8');
  const rows = (name: string) =>
    file(name)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
  const [step] = rows('metrics.jsonl') as MetricsRow[];
  if (!step) throw new Error('the run has no step');
  return { notices: status.notices, step, file, updates: rows('warmup.jsonl') as WarmupRow[] };
}

const told = (updates: readonly WarmupRow[]) => updates.map(({ loss_nats_per_token }) => loss_nats_per_token?.toFixed(3)).join(' ');

it('the student learns from what the teacher passed; a later run takes the same trajectories without sampling any', async () => {
  const warm = await run('warmup', { 'warmup.rollouts_per_task': 2 });
  const { trials } = JSON.parse(warm.file(TRAJECTORY_FILE)) as TrajectoryDocument;
  const passed = trials.filter((trial) => trial.passed).length;
  expect(await trialsOf(product.link.client, 'warmup.warmup')).toHaveLength(TRIALS);
  expect(trials).toHaveLength(TRIALS);
  expect(passed).toBeLessThan(TRIALS); // or `keep` would make no difference here
  expect(warm.notices).toContainEqual(`warm-up on ${passed} sequences of ${passed} of the teacher's ${TRIALS} trials`);
  expect(warm.updates).toMatchObject(
    Array.from({ length: UPDATES }, (_, done) => ({ update: done + 1, datums: passed, learning_rate: 6e-3 })),
  );

  const from = '.stillroom/test-runs/warmup';
  const still = { 'warmup.trajectories_from': from, 'warmup.keep': 'all', 'warmup.learning_rate': 1e-12 };
  const cold = await run('warmup-loaded', still);
  await expect(trialsOf(product.link.client, 'warmup-loaded.warmup')).rejects.toThrow(/not found/);
  expect(cold.notices).toContainEqual(`warm-up on ${TRIALS} sequences of ${TRIALS} of the teacher's ${TRIALS} trials from ${from}`);
  expect(cold.updates).toMatchObject(Array.from({ length: UPDATES }, () => ({ datums: TRIALS, learning_rate: 1e-12 })));

  const solved = (row: MetricsRow) => `${row.passed_trials}/${row.executed_trials}`;
  console.log(`warm-up: loss ${told(warm.updates)} nats/token, solved in step 1: ${solved(warm.step)}`);
  console.log(`with a learning rate of 1e-12: loss ${told(cold.updates)} nats/token, solved in step 1: ${solved(cold.step)}`);
  const change = ({ updates }: typeof warm) => (updates.at(-1)?.loss_nats_per_token ?? Number.NaN) / (updates[0]?.loss_nats_per_token ?? 0);
  expect(change(warm)).toBeLessThan(0.7);
  expect(change(cold)).toBeCloseTo(1, 3);
  expect(solveRateOf(warm.step)).toBeGreaterThan((solveRateOf(cold.step) ?? 1) + 0.15);
}, 300_000);
