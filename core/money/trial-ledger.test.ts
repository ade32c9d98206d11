import { expect, it } from 'vitest';
import { TrialLedger } from './trial-ledger.ts';

const ledger = (known = {}) => new TrialLedger({ capUsd: 1, spentUsd: 0, heldUsd: 0, perTrialUsd: 0.1, ...known });

it('fits exactly as many trials as there is room for, whatever floating-point sums say', () => {
  const money = ledger({ capUsd: 0.3 });
  for (const trial of ['a', 'b', 'c']) {
    expect(money.fits(0.1)).toBe(true);
    money.reserve(trial, 0.1);
  }
  expect(money.fits(0.1)).toBe(false);
  expect(money.needUsd(0.1)).toBeCloseTo(0.4);
});

it('gives back what a trial did not use, and keeps its share of the training', () => {
  const money = ledger({ spentUsd: 0.85 });
  money.reserve('a', 0.1);
  expect(money.fits(0.1)).toBe(false);
  money.settle('a', { paidUsd: 0.02, heldUsd: 0.03 });
  expect([money.spentUsd, money.reservedUsd]).toEqual([expect.closeTo(0.87), expect.closeTo(0.03)]);
  expect(money.fits(0.1)).toBe(true);
});

it('without a cap everything fits; with one that is moved, what fits then', () => {
  const money = ledger({ capUsd: null });
  expect(money.fits(1e9)).toBe(true);
  money.setCap(0.05);
  expect(money.fits(0.1)).toBe(false);
});

it('refuses to settle what was never reserved, or to reserve it twice', () => {
  const money = ledger();
  expect(() => money.settle('a', { paidUsd: 1, heldUsd: 0 })).toThrow('a was not reserved');
  money.reserve('a', 0.1);
  expect(() => money.reserve('a', 0.1)).toThrow('a is reserved already');
});
