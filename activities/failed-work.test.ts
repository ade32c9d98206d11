import { afterAll, beforeAll, expect, it } from 'vitest';
import type { BlobRef, TrialId } from '../core/ids.ts';
import { NOTHING_PAID, type Usage } from '../core/measures/usage.ts';
import { FencedLog } from '../services/blobs/fenced-log.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { createCutOffActivities } from './cut-off.ts';
import { PaidCalls } from './paid-calls.ts';
import { answered, order } from './testing/call-orders.ts';
import { Crash, dyingAt } from './testing/crashing-store.ts';
import { MemoryService } from './testing/memory-service.ts';
import { CONFIG, Project } from './testing/project.ts';
import { inActivity, scoredBatch } from './testing/training.ts';
import { createTrainingActivities } from './training.ts';

/** What a batch and an update took that failed, as the store knows it. */

let project: Project;
let run: BlobRef;
beforeAll(async () => {
  project = await Project.make();
  run = (await project.resolve({ config: CONFIG.replace('student_sample = 0.5', 'student_sample = 1e6\nteacher_prefill = 1e5') })).ref;
});
afterAll(() => project[Symbol.asyncDispose]());

const cutOff = (objects = new MemoryObjects()) => ({ objects, ...createCutOffActivities({ records: project.records, objects }) });

it('a batch took what its ended trials say, what the books of the others say, and what scores cost; other batches are not its', async () => {
  const { objects, readBatch } = cutOff();
  const book = (of: string, kind: string) =>
    PaidCalls.open(new FencedLog(objects, `runs/first/calls/${of}/${kind}/`), { execution: 'e', attempt: 1 });
  const said = { meters: { student_sample: 2, student_prefill: 5 }, sent: { ...NOTHING_PAID.sent, sampledTokens: 2 }, lost: [] };
  const ended = await book('p-s0001-000-0', 'sample');
  await ended.call(order('sample', 10), answered(2));
  await ended.finish({ trialId: 'p-s0001-000-0', ...said, usd: 2 });
  await (await book('p-s0001-000-0', 'score')).call(order('score', 40), answered(1));
  await (await book('p-s0001-001-0-r1', 'sample')).call(order('sample', 10), answered(3));
  void (await book('p-s0001-001-1', 'sample')).call(order('sample', 20), () => new Promise<never>(() => {}));
  for (const other of ['p-s0011-000-0', 'p-s0001x-000-0', 'p-ea-000-0'])
    await (await book(other, 'sample')).call(order('sample', 10), answered(7));
  await expect.poll(() => [...objects.kept.keys()].filter((key) => key.includes('p-s0001-001-1')).length).toBe(2);

  const paid = await inActivity('read', 1, () => readBatch({ run, batch: 'p-s0001' }));
  expect(paid).toEqual({
    meters: {
      student_prefill: 5 + 13 + 48,
      student_sample: 2 + 3 + 28,
      teacher_prefill: 40,
    },
    sent: { promptTokens: 10, sampledTokens: 2 + 3 + 1, scoredTokens: 40, trainedTokens: 0 },
    lost: [{ kind: 'sample', of: 'p-s0001-001-1' as TrialId, callIndex: 0, promptTokens: 20, sampledTokens: 28 }],
    usd: expect.closeTo(33 + 4),
  });
  expect(await inActivity('read', 1, () => readBatch({ run, batch: 'p-s0002' }))).toEqual(NOTHING_PAID);
});

it.each([
  ['is taken, and its result was never seen', 2, { sent: true }],
  ['may have been taken or not', 1, { sent: false }],
])('a training whose batch %s took it; from a place where it stands, it took nothing', async (_, write, { sent }) => {
  const { objects, readTraining } = cutOff();
  const service = new MemoryService();
  const { records, blobs } = project;
  const activities = (death?: { write: number; afterIt: boolean }) =>
    createTrainingActivities({ records, blobs, objects: dyingAt(objects, death), models: service.access() });
  const training = await inActivity('open', 1, () => activities().openTraining({ run }));
  const read = (): Promise<Usage> => inActivity('read', 1, () => readTraining({ run, training }));
  expect(await read()).toEqual({ meters: {}, sent: NOTHING_PAID.sent, lost: [] });

  const trials = await scoredBatch(blobs, 'first', 1);
  const batch = { run, step: 1, sampler: 'step-0000', training, trials };
  const dies = inActivity('train', 1, () => activities({ write, afterIt: true }).trainBatch(batch));
  await expect(dies).rejects.toBeInstanceOf(Crash);
  const { meters, sent: counted, lost } = await read();
  const trained = meters.student_train ?? 0;
  expect(trained).toBeGreaterThan(0);
  expect(counted.trainedTokens).toBe(sent ? trained : 0);
  expect(lost).toEqual(sent ? [] : [{ kind: 'train', of: 'step-0001', callIndex: 0, promptTokens: trained, sampledTokens: 0 }]);
});
