import { expect, it } from 'vitest';
import { needsConfirmation } from './cost-confirmation.ts';

it.each([
  { fullyPriced: true, maxUsd: null, yes: true, asks: false },
  { fullyPriced: false, maxUsd: 5, yes: true, asks: false },
  { fullyPriced: false, maxUsd: null, yes: true, asks: true },
  { fullyPriced: true, maxUsd: 5, yes: false, asks: true },
])('priced $fullyPriced, cap $maxUsd, yes $yes: asks $asks', ({ asks, ...known }) => {
  expect(needsConfirmation(known)).toBe(asks);
});
