import { expect, it } from 'vitest';
import { addUsage, type LostCall, lostCalls, MOST_LOST_LISTED, NO_USAGE, NOTHING_SENT, withoutLostList } from './usage.ts';

const lost: LostCall = { kind: 'sample', of: 't1', callIndex: 2, promptTokens: 9, sampledTokens: 4 };

it('adds meters, tokens sent, and the list of lost calls', () => {
  const trial = { meters: { student_sample: 3 }, sent: { ...NOTHING_SENT, promptTokens: 5, sampledTokens: 3 }, lost: [lost] };
  const score = { meters: { teacher_prefill: 8 }, sent: { ...NOTHING_SENT, scoredTokens: 8 }, lost: [] };
  const train = { meters: { student_train: 8 }, sent: { ...NOTHING_SENT, trainedTokens: 8 }, lost: [lost] };
  expect(addUsage(trial, score, train)).toEqual({
    meters: { student_sample: 3, student_train: 8, teacher_prefill: 8 },
    sent: { promptTokens: 5, sampledTokens: 3, scoredTokens: 8, trainedTokens: 8 },
    lost: [lost, lost],
  });
  expect(addUsage()).toEqual(NO_USAGE);
});

it('lists the newest lost calls and counts the others, however they are added up', () => {
  const calls = (from: number, count: number) => Array.from({ length: count }, (_, i) => ({ ...lost, callIndex: from + i }));
  const most = MOST_LOST_LISTED;
  const early = addUsage({ ...NO_USAGE, lost: calls(0, most) }, { ...NO_USAGE, lost: calls(most, 3) });
  const all = addUsage(early, { ...NO_USAGE, lost: calls(most + 3, 2) });
  expect(all.lost).toEqual(calls(5, most));
  expect([early, all, addUsage(all, all), withoutLostList(all)].map(lostCalls)).toEqual([most + 3, most + 5, 2 * (most + 5), most + 5]);
  expect(withoutLostList(all).lost).toEqual([]);
});
