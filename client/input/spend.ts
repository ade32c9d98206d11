import type { RunConfig } from '../../core/config/index.ts';
import { estimateCost, type SplitSizes } from '../../core/estimate/index.ts';
import { boundOf } from '../../core/run/cost-confirmation.ts';

/** Why this run could spend without bound, and what bounds it; null when every meter has a price or a cap is set. */
export function unboundedSpend(config: RunConfig, sizes: SplitSizes): string | null {
  const { bounded, missingPrices } = boundOf(estimateCost(config, sizes), config.budget.max_usd);
  if (bounded) return null;
  return `the run's spend has no bound: no price for ${missingPrices.join(', ')} and no budget.max_usd. Set [budget] max_usd, or the missing prices in [pricing]`;
}
