import { expect, it } from 'vitest';
import { boundOf, costText, needsConfirmation } from './cost-confirmation.ts';

it.each([
  { fullyPriced: true, maxUsd: null, yes: true, asks: false },
  { fullyPriced: false, maxUsd: 5, yes: true, asks: false },
  { fullyPriced: false, maxUsd: null, yes: true, asks: true },
  { fullyPriced: true, maxUsd: 5, yes: false, asks: true },
])('priced $fullyPriced, cap $maxUsd, yes $yes: asks $asks', ({ asks, ...known }) => {
  expect(needsConfirmation(known)).toBe(asks);
});

it.each([
  ['everything priced', 'about $2.50', [2, 0.5]],
  ['some of it', 'about $2.00 and the unknown cost of student_train', [2, null]],
  ['nothing', 'the unknown cost of student_sample, student_train', [null, null]],
] as const)('says what it is going to cost, %s', (_, text, usd) => {
  const lines = (['student_sample', 'student_train'] as const).map((meter, i) => ({
    meter,
    tokens: 9,
    pricePerMtokUsd: usd[i] ?? null,
    usd: usd[i] ?? null,
  }));
  const unpricedMeters = lines.filter((line) => line.usd === null).map(({ meter }) => meter);
  expect(costText({ lines, pricedUsd: lines.reduce((sum, line) => sum + (line.usd ?? 0), 0), unpricedMeters })).toBe(text);
});

it('the bound names what a cap cannot see, and the prices that would change that', () => {
  const blind = { fullyPriced: false, unpricedMeters: ['student_prefill', 'student_cached_prefill', 'teacher_sample'] } as const;
  const unseenByCap = blind.unpricedMeters;
  const missingPrices = ['student_prefill', 'teacher_sample'];
  expect(boundOf(blind, null)).toEqual({ maxUsd: null, bounded: false, unseenByCap, missingPrices });
  expect(boundOf(blind, 3)).toEqual({ maxUsd: 3, bounded: true, unseenByCap, missingPrices });
  expect(boundOf({ fullyPriced: true, unpricedMeters: [] }, null)).toEqual({
    maxUsd: null,
    bounded: true,
    unseenByCap: [],
    missingPrices: [],
  });
});
