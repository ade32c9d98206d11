import { expect, it } from 'vitest';
import { reservationUsd, type TrialCosts, usualMostUsd, withBatch } from './reservations.ts';

const reserves = { limitUsd: null, estimatedUsd: { training: 3, student: 2, teacher: 1 } };
const of = (...costs: number[]) => costs.reduce<TrialCosts>((known, usd) => withBatch(known, 'training', usd), {});

it('is the limit, else the most that its like have cost, else the estimate', () => {
  expect(reservationUsd({ ...reserves, limitUsd: 5 }, of(7), 'training')).toBe(5);
  expect(reservationUsd(reserves, of(0.5, 0.7, 0.6), 'training')).toBe(0.7);
  expect(reservationUsd(reserves, of(0.5), 'student')).toBe(2);
  expect(reservationUsd(reserves, {}, 'teacher')).toBe(1);
});

it('forgets batches of long ago, and learns nothing from one that cost nothing', () => {
  expect(reservationUsd(reserves, of(9, 1, 1, 1, 1, 1, 1, 1, 2), 'training')).toBe(2);
  expect(withBatch(of(1), 'training', null)).toEqual(of(1));
});

it.each([
  [[], null],
  [[0, 0], null],
  [[3], 3],
  [[0, 4, 1], 4],
  [Array.from({ length: 100 }, (_, index) => index + 1), 95],
])('the 95th percentile of %j is %j', (costs, usd) => expect(usualMostUsd(costs)).toBe(usd));
