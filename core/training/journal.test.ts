import { describe, expect, it } from 'vitest';
import type { BlobRef } from '../ids.ts';
import { compareWithPlan, isSuperseded, type JournalEntry, nextSeqIdOf, standingOf, timesLost } from './journal.ts';
import { usageOf } from './journal-usage.ts';

const by = { executionId: 'e', activityId: '7', attempt: 1 };
const origin = { entry: null as BlobRef | null, path: null, updates: 0 };
const OPENED: JournalEntry = { is: 'opened', by, sessionId: 's', modelId: 'm', nextSeqId: 1, origin, moments: 'fresh' };
const intent = (call: string, seqId: number, tokens = 0): JournalEntry => ({ is: 'intent', by, call, of: 'step-0001', seqId, tokens });
const sent = (seqId: number, chunks = 1): JournalEntry => ({
  is: 'sent',
  by,
  saved: { seqId, requestIds: Array.from({ length: chunks }, (_, i) => `r${seqId + i}`) },
});
const done = (loss: number): JournalEntry => ({ is: 'done', by, result: { loss } });
const standing = (...entries: JournalEntry[]) => standingOf({ number: 1, entries });

describe('a model and the plan', () => {
  const made = [OPENED, intent('a', 1, 50), sent(1), done(0.5)];
  it.each<[string, JournalEntry[], readonly string[], object]>([
    ['nothing was called yet', [OPENED], ['a'], { kind: 'go on', done: [], pending: null }],
    ['what was called is a beginning of it', made, ['a', 'b'], { kind: 'go on', done: [{ loss: 0.5 }], pending: null }],
    ['a call is under way', [...made, intent('b', 2), sent(2)], ['a', 'b'], { kind: 'go on', pending: { seqId: 2, requestIds: ['r2'] } }],
    ['a refused call was never made', [...made, intent('b', 2), { is: 'refused', by }], ['a', 'c'], { kind: 'go on', pending: null }],
    ['a call may have been taken', [...made, intent('b', 2)], ['a', 'b'], { kind: 'anew', cause: expect.stringContaining('nobody knows') }],
    ['another call was made', made, ['x'], { kind: 'anew', cause: expect.stringContaining('"a" instead of "x"') }],
    ['more was called than is wanted', made, [], { kind: 'anew', cause: expect.stringContaining('nothing more') }],
    ['it was given up', [...made, { is: 'abandoned', by, cause: 'gone', lost: true }], ['a'], { kind: 'anew', cause: 'gone' }],
  ])('%s', (_, entries, wanted, decision) => {
    expect(compareWithPlan(standing(...entries), wanted)).toMatchObject(decision);
  });

  it('a call takes the number after those that the one before it used', () => {
    expect(nextSeqIdOf(standing(OPENED), 9)).toBe(1);
    expect(nextSeqIdOf(standing(OPENED, intent('a', 1), sent(1, 3)), 9)).toBe(4);
    expect(nextSeqIdOf(standing(OPENED, intent('a', 1), { is: 'refused', by }), 9)).toBe(1);
    expect(nextSeqIdOf(standing(), 9)).toBe(9);
  });
});

it('an attempt is superseded by a later one at the same activity, by no other', () => {
  const generations = [{ number: 1, entries: [intent('a', 1)] }];
  const attempt = (change: Partial<typeof by>) => isSuperseded(generations, { ...by, attempt: 0, ...change });
  expect(attempt({})).toBe(true);
  expect([attempt({ attempt: 1 }), attempt({ activityId: '8' }), attempt({ executionId: 'f' })]).toEqual([false, false, false]);
});

it('books what was sent once, and what may have been sent as lost', () => {
  const first: JournalEntry[] = [
    intent('a', 1, 50),
    sent(1),
    { is: 'takeover', by },
    intent('b', 2, 30),
    { is: 'abandoned', by, cause: 'x', lost: true },
  ];
  const second: JournalEntry[] = [OPENED, intent('a', 1, 50), sent(1), done(1), intent('b', 2, 30), { is: 'refused', by }];
  const generations = [
    { number: 1, entries: first },
    { number: 2, entries: second },
  ];
  expect(usageOf(generations)).toEqual({
    meters: { student_train: 130 },
    sent: { promptTokens: 0, sampledTokens: 0, scoredTokens: 0, trainedTokens: 100 },
    lost: [{ kind: 'train', of: 'step-0001', callIndex: 1, promptTokens: 30, sampledTokens: 0 }],
  });
  expect(timesLost(generations)).toBe(1);
});
