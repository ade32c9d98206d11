import { expect, it } from 'vitest';
import { REMEMBERED_FETCHED, REMEMBERED_UNFETCHED, RememberedResults } from './remembered-results.ts';
import type { StoredResult } from './run-ledger.ts';

const result = (seq: number): StoredResult => ({
  record: { record: 'done', seq, outcome: { kind: 'proto' }, state: null, at: '2026-01-01T00:00:00Z' },
  payload: { offset: 0, length: 0 },
});

it('forgets by count what nobody fetched, far later than what was fetched, and never what is needed', () => {
  const results = new RememberedResults((seq) => seq === 2);
  const known = () => results.all().map(({ record }) => record.seq);
  for (let seq = 1; seq <= REMEMBERED_UNFETCHED; seq += 1) results.add(result(seq));
  expect(known().slice(0, 3)).toEqual([1, 2, 3]);
  for (let more = 1; more <= 3; more += 1) results.add(result(REMEMBERED_UNFETCHED + more));
  expect(known().slice(0, 3)).toEqual([2, 4, 5]);
  expect(known()).toHaveLength(REMEMBERED_UNFETCHED + 1);
});

it('forgets first what was fetched longest ago, and remembers over a clearing what was fetched', () => {
  const results = new RememberedResults(() => false);
  const fill = () => {
    for (let seq = 1; seq <= REMEMBERED_FETCHED + 2; seq += 1) results.add(result(seq));
  };
  fill();
  for (let seq = 1; seq <= REMEMBERED_FETCHED; seq += 1) results.markFetched(seq);
  results.markFetched(1);
  results.clear();
  expect(results.get(1)).toBeNull();
  fill();
  results.markFetched(REMEMBERED_FETCHED + 1);
  expect([1, 2, 3, REMEMBERED_FETCHED + 2].map((seq) => results.get(seq) !== null)).toEqual([true, false, true, true]);
  expect([1, REMEMBERED_FETCHED + 1, REMEMBERED_FETCHED + 2].map((seq) => results.isFetched(seq))).toEqual([true, true, false]);
});
