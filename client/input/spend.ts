import type { RunConfig } from '../../core/config/index.ts';
import { METERS, type Meter } from '../../core/measures/meters.ts';

/** A cached prefill without a price of its own costs a share of the full one, so it is known when that is. */
const CACHED_OF: Partial<Record<Meter, Meter>> = {
  student_cached_prefill: 'student_prefill',
  teacher_cached_prefill: 'teacher_prefill',
};

/** Meters whose price nobody stated. An unknown price is never zero. */
export function unpricedMeters(pricing: RunConfig['pricing']): Meter[] {
  return METERS.filter((meter) => {
    const full = CACHED_OF[meter];
    return pricing[meter] === null && (full === undefined || pricing[full] === null);
  });
}

/** Why this run could spend without bound; null when every meter has a price or a cap is set. */
export function unboundedSpend({ pricing, budget }: RunConfig): string | null {
  const unpriced = unpricedMeters(pricing);
  if (unpriced.length === 0 || budget.max_usd !== null) return null;
  return `the run's spend has no bound: no price for ${unpriced.join(', ')} and no budget.max_usd`;
}
