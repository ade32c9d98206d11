import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readStore } from '../client/blobs.ts';
import { collectRun } from '../services/blobs/gc.ts';
import { openObjectStore } from '../services/blobs/open.ts';
import { quickTasks } from './keys/setting.ts';
import { resultOf } from './support/answering.ts';
import { type Machine, startMachine } from './support/machine.ts';
import { configWith, type Product, startProduct, TRAINER_KEY } from './support/product.ts';
import { S3_ENV, type S3Server, startS3Server } from './support/s3/server.ts';

const RUN_ID = 'two-workers';
const RUN_DIR = `.stillroom/runs/${RUN_ID}`;
const STEPS = 3;
const KEYS = {
  'train.steps': STEPS,
  'train.tasks_per_batch': 4,
  'train.group_size': 2,
  'train.save_state_every': 2,
  'train.trial_concurrency': 4,
  'gate.k': 1,
  'warmup.steps': 2,
};
const INPUT = {
  agent: 'turn',
  config: configWith(KEYS),
  taskIds: quickTasks('train', /^(copy|move)-/, 4),
  holdoutTaskIds: quickTasks('holdout', /^delete-/, 4),
  yes: true,
};
const LOCATION = { kind: 's3', bucket: 'lab', prefix: 'team', region: null } as const;

let product: Product;
let server: S3Server;
let machines: readonly Machine[];
beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  [product, server] = await Promise.all([startProduct({ workers: [] }), startS3Server(LOCATION.bucket)]);
  const settings = {
    blobStore: `s3://${LOCATION.bucket}/${LOCATION.prefix}`,
    blobStoreEndpoint: server.endpoint,
    workers: { rolloutSlots: 2 },
  };
  const env = {
    ...S3_ENV,
    TEMPORAL_ADDRESS: product.stack.address,
    TINKER_BASE_URL: product.stack.trainerUrl ?? '',
    TINKER_API_KEY: TRAINER_KEY,
  };
  machines = await Promise.all([startMachine(settings, env), startMachine(settings, env)]);
}, 180_000);
afterAll(async () => {
  await Promise.all((machines ?? []).map((machine) => machine[Symbol.asyncDispose]()));
  await server?.[Symbol.asyncDispose]();
  await product?.[Symbol.asyncDispose]();
}, 60_000);

it('two workers that share only Temporal, the trainer and a bucket finish a run together', async () => {
  const { client } = product.link;
  const handle = await client.workflow.start('distill', {
    taskQueue: product.settings.taskQueues.control,
    workflowId: RUN_ID,
    args: [INPUT],
  });
  const objects = await openObjectStore({ blobStore: { ...LOCATION, endpoint: server.endpoint } });
  await expect.poll(async () => (await readStore(objects, product.link)).stateOf(RUN_ID), { timeout: 60_000 }).toBe('running');
  const { verdict } = await resultOf(handle);
  expect(verdict).toMatchObject({ teacher: expect.any(Number), before: expect.any(Number), after: expect.any(Number) });

  const children = ['warmup', 'eval-teacher', 'step-0001', 'step-0002', 'step-0003', 'eval-student-after'];
  const trials = await Promise.all(children.map((child) => workersOf(client, `${RUN_ID}.${child}`, 'runTrial')));
  const byMachine = machines.map(({ pid }) => trials.flat().filter((worker) => worker === pid).length);
  console.log(`two workers: trials ${byMachine.join(' and ')}`);
  expect(Math.min(...byMachine)).toBeGreaterThan(0);
  for (const { read } of machines) expect(read('.stillroom/blobs')).toBeNull();

  const [mirrored] = await workersOf(client, RUN_ID, 'mirrorRun');
  expectWhole(machines.find(({ pid }) => pid === mirrored) as Machine);

  const { runs, stateOf } = await readStore(objects, product.link);
  expect([runs.map(({ runId }) => runId), stateOf(RUN_ID), stateOf('never')]).toEqual([[RUN_ID], 'ended', 'unknown']);
  await collectRun(objects, RUN_ID);
  expect((await readStore(objects, product.link)).runs).toEqual([]);
}, 240_000);

/** The folder of the worker that ended the run holds what both wrote. */
function expectWhole({ read }: Machine): void {
  const rowsOf = (file: string) =>
    (read(`${RUN_DIR}/${file}`) ?? '')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { step: number; update: number });
  expect(rowsOf('metrics.jsonl').map(({ step }) => step)).toEqual([1, 2, 3]);
  expect(rowsOf('warmup.jsonl').map(({ update }) => update)).toEqual([1, 2]);
  const evaluations = ['teacher', 'student-before', 'student-after'].map((label) => `eval-${label}.json`);
  const others = ['run.json', 'status.json', 'gate.json', 'handoff.toml', 'baseline-teacher.json', 'baseline-student.json'];
  for (const file of [...evaluations, ...others, 'warmup-trajectories.json', 'samples-step-0003.md'])
    expect(read(`${RUN_DIR}/${file}`), file).not.toBeNull();
}

/** Processes that ran the activities of this type, by the history of their workflow. */
async function workersOf(client: Client, workflowId: string, type: string): Promise<number[]> {
  const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
  const scheduled = new Set<string>();
  return (events ?? []).flatMap((event) => {
    if (event.activityTaskScheduledEventAttributes?.activityType?.name === type) scheduled.add(String(event.eventId));
    const started = event.activityTaskStartedEventAttributes;
    return started && scheduled.has(String(started.scheduledEventId)) ? [Number.parseInt(started.identity ?? '', 10)] : [];
  });
}
