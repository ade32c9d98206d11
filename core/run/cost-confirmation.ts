import type { CostEstimate } from '../estimate/cost.ts';
import type { Meter } from '../measures/meters.ts';
import { isUnknown, missingPrices } from '../measures/spend.ts';

/** What is known of a run's cost before it starts. */
export type KnownCost = { readonly fullyPriced: boolean; readonly maxUsd: number | null };

/** True when something bounds what a run can spend: a price for every meter, or a cap. Unbounded spend always needs a person. */
export function isBounded({ fullyPriced, maxUsd }: KnownCost): boolean {
  return fullyPriced || maxUsd !== null;
}

/** Must a person say yes to the cost? `yes` answers in advance, where the spend is bounded. */
export function needsConfirmation(cost: KnownCost & { readonly yes: boolean }): boolean {
  return !(cost.yes && isBounded(cost));
}

/** What a run is going to cost, in words. Where nothing has a price there is no sum, not one of zero. */
export function costText({ lines, pricedUsd, unpricedMeters }: Pick<CostEstimate, 'lines' | 'pricedUsd' | 'unpricedMeters'>): string {
  const unknown = `the unknown cost of ${unpricedMeters.join(', ')}`;
  if (isUnknown({ lines, blindTo: unpricedMeters })) return unknown;
  return `about $${pricedUsd.toFixed(2)}${unpricedMeters.length === 0 ? '' : ` and ${unknown}`}`;
}

/** What bounds a run's spend, as data. */
export type Bound = {
  /** USD; null when no cap is set. */
  readonly maxUsd: number | null;
  /** Every meter has a price, or a cap is set. */
  readonly bounded: boolean;
  /** Meters that a cap cannot see. */
  readonly unseenByCap: readonly Meter[];
  /** The keys of `[pricing]` that make everything priced. */
  readonly missingPrices: readonly Meter[];
};

/** The bound of a run with this estimate and a cap of `maxUsd`, null where none is set. */
export function boundOf(
  { fullyPriced, unpricedMeters }: Pick<CostEstimate, 'fullyPriced' | 'unpricedMeters'>,
  maxUsd: number | null,
): Bound {
  return {
    maxUsd,
    bounded: isBounded({ fullyPriced, maxUsd }),
    unseenByCap: unpricedMeters,
    missingPrices: missingPrices(unpricedMeters),
  };
}
