import { expect, it } from 'vitest';
import { addUsage, type LostCall, NO_USAGE, NOTHING_SENT } from './usage.ts';

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
