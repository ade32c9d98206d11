import { expect, test } from 'vitest';
import { type LostCall, NOTHING_SENT } from '../../core/measures/usage.ts';
import type { LoggedCall } from '../../trainer/service/call-log.ts';
import { type RunBooks, reconcile, unexplained } from './books.ts';

let requests = 0;
const call = (kind: LoggedCall['kind'], digest: string, tokens: Partial<LoggedCall>): LoggedCall => ({
  at: '2026-01-01T00:00:00.000Z',
  kind,
  request: `r${requests++}`,
  session: 's',
  owner: 'o',
  seq: requests,
  weights: null,
  digest,
  prompt: 0,
  sampled: 0,
  scored: 0,
  trained: 0,
  failed: null,
  ...tokens,
});
const sample = (digest: string, prompt: number, sampled: number) => call('sample', digest, { prompt, sampled });
const kept = (digest: string, sampled: number) => ({ kind: 'sample' as const, of: 't', digest, sampled });
const lost = (promptTokens: number, sampledTokens: number, kind: LostCall['kind'] = 'sample'): LostCall => ({
  kind,
  of: 't',
  callIndex: 0,
  promptTokens,
  sampledTokens,
});
const books = (more: Partial<RunBooks>): RunBooks => ({ sent: NOTHING_SENT, lost: [], kept: [], unheard: [], firstCalls: [], ...more });
const NOTHING = { prompt: 0, sampled: 0, scored: 0, trained: 0 };

test('a call that was answered once and lost once: the books explain both', () => {
  const calls = [sample('a', 10, 5), sample('a', 10, 5), call('score', 'b', { scored: 30 })];
  const found = reconcile(
    calls,
    books({
      sent: { ...NOTHING_SENT, promptTokens: 10, sampledTokens: 5, scoredTokens: 30 },
      kept: [kept('a', 5), { kind: 'score', of: 't', digest: 'b', sampled: 0 }],
      lost: [lost(10, 28), lost(12, 28)],
    }),
  );
  expect(unexplained(found)).toEqual(NOTHING);
  expect(found).toMatchObject({ lostCarriedOut: 1, lostNotCarriedOut: 1, unknownToRun: [], unknownToTrainer: [] });
});

test('a call that nobody lists is found, with its tokens', () => {
  const twice = sample('a', 10, 5);
  const found = reconcile(
    [sample('a', 10, 5), twice],
    books({ sent: { ...NOTHING_SENT, promptTokens: 10, sampledTokens: 5 }, kept: [kept('a', 5)] }),
  );
  expect(unexplained(found)).toEqual({ ...NOTHING, prompt: 10, sampled: 5 });
  expect(found.unknownToRun).toEqual([twice]);
});

test('a lost call of another size explains nothing', () => {
  const found = reconcile([sample('a', 10, 5)], books({ lost: [lost(11, 28), lost(10, 4)] }));
  expect(found.unknownToRun).toHaveLength(1);
  expect(found).toMatchObject({ lostCarriedOut: 0, lostNotCarriedOut: 2 });
});

test('an answer that the books have and the trainer never gave is found', () => {
  expect(reconcile([], books({ kept: [kept('a', 5)] })).unknownToTrainer).toEqual([kept('a', 5)]);
});

test('answers that reached no agent are explained by their sum', () => {
  const calls = [sample('a', 10, 5), sample('b', 7, 2), sample('c', 9, 9)];
  const found = reconcile(
    calls,
    books({ sent: { ...NOTHING_SENT, promptTokens: 17, sampledTokens: 7 }, unheard: [{ of: 't', prompt: 17, sampled: 7 }] }),
  );
  expect(found.unknownToRun.map(({ digest }) => digest)).toEqual(['c']);
});

test('first calls of fresh weights are explained by their size, each once', () => {
  const calls = [sample('a', 16, 1), sample('a', 16, 1), sample('a', 16, 1)];
  const found = (count: number) => reconcile(calls, books({ firstCalls: [{ of: 'step-0001', calls: count, prompt: 16 }] }));
  const left = ({ unknownToRun, unknownToTrainer }: ReturnType<typeof found>) => [unknownToRun.length, unknownToTrainer.length];
  expect([2, 3, 4].map((count) => left(found(count)))).toEqual([
    [1, 0],
    [0, 0],
    [0, 1],
  ]);
});

test('training: what was sent twice must be listed as lost', () => {
  const calls = [call('forward_backward', 'x', { trained: 40 }), call('forward_backward', 'x', { trained: 40 })];
  const sent = { ...NOTHING_SENT, trainedTokens: 40 };
  expect(unexplained(reconcile(calls, books({ sent }))).trained).toBe(40);
  const listed = reconcile(calls, books({ sent, lost: [lost(40, 0, 'train')] }));
  expect(unexplained(listed).trained).toBe(0);
  // booked twice and listed as lost as well: it never was
  const both = reconcile(calls, books({ sent: { ...NOTHING_SENT, trainedTokens: 80 }, lost: [lost(40, 0, 'train')] }));
  expect([unexplained(both).trained, both.lostNotCarriedOut]).toEqual([0, 1]);
});

test('a failed call counts for nobody', () => {
  expect(reconcile([{ ...sample('a', 0, 0), failed: 'cancelled' }], books({})).unknownToRun).toEqual([]);
});
