import { MockActivityEnvironment } from '@temporalio/testing';
import { expect, it } from 'vitest';
import type { BlobRef, TrialId } from '../core/ids.ts';
import { NOTHING_PAID } from '../core/measures/usage.ts';
import { FencedLog, StaleAttempt } from '../services/blobs/fenced-log.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { createCutOffActivities } from './cut-off.ts';
import { PaidCalls } from './paid-calls.ts';
import type { RunRecord, RunRecords } from './run-records.ts';
import { answered, order } from './testing/call-orders.ts';

const TRIAL = 'p-s0002-000-0' as TrialId;
const run = 'sha256:run' as BlobRef;
const pricing = { student_sample: 1e6, student_prefill: 1e5, teacher_prefill: 1e4 };

const objects = new MemoryObjects();
const records = { load: async () => ({ runId: 'run', config: { pricing } }) as unknown as RunRecord } as unknown as RunRecords;
const { readBooks } = createCutOffActivities({ records, objects });
const read = (...books: Parameters<typeof readBooks>[0]['books']) =>
  new MockActivityEnvironment().run(() => readBooks({ run, books })) as ReturnType<typeof readBooks>;

const attempt = (kind: string, number: number) =>
  PaidCalls.open(new FencedLog(objects, `runs/run/calls/${TRIAL}/${kind}/`), { execution: 'e', attempt: number });
const unanswered = () => new Promise<never>(() => {});

it('work that never began took nothing, and leaves nothing in the store', async () => {
  expect(await read({ of: TRIAL, kind: 'sample' }, { of: 'preflight', kind: 'check' })).toEqual(NOTHING_PAID);
  expect([...objects.kept.keys()]).toEqual([]);
});

it('counts what all attempts were answered, and a call without an answer at the most that it could take; nothing comes after that', async () => {
  const first = await attempt('sample', 1);
  await first.call(order('sample', 10), answered(3));
  const second = await attempt('sample', 2);
  await second.call(order('sample', 11), answered(4));
  void second.call(order('sample', 20), unanswered);
  const scores = await attempt('score', 1);
  await scores.call(order('score', 14), answered(1));
  // The intent of the call without an answer is written by now: the book's entries follow one another.
  await expect.poll(() => objects.kept.size).toBe(2 * 3 + 1 + 3);

  const paid = await read({ of: TRIAL, kind: 'sample' }, { of: TRIAL, kind: 'score' });
  const lost = { kind: 'sample', of: TRIAL, callIndex: 1, promptTokens: 20, sampledTokens: 28 };
  expect(paid).toEqual({
    meters: { student_prefill: 13 + 15 + 48, student_sample: 3 + 4 + 28, teacher_prefill: 14 },
    sent: { promptTokens: 21, sampledTokens: 3 + 4 + 1, scoredTokens: 14, trainedTokens: 0 },
    lost: [lost],
    usd: expect.closeTo(35 + 7.6 + 0.14),
  });
  expect(await read({ of: TRIAL, kind: 'sample' }, { of: TRIAL, kind: 'score' })).toEqual(paid);
  await expect(second.call(order('sample', 30), answered(1))).rejects.toThrow(StaleAttempt);
  expect((await read({ of: TRIAL, kind: 'sample' })).lost).toEqual([lost]);
});
