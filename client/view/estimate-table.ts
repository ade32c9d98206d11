import { boundOf } from '../../core/run/cost-confirmation.ts';
import type { Estimate } from '../../core/run/results.ts';
import type { Colors } from '../console.ts';
import { count, usd } from './format.ts';
import { meterTable, pricedSum } from './meter-table.ts';
import { wrapped } from './wrap.ts';

/** The estimate per meter, within 80 columns. A meter without a price says so; its cost is unknown, never zero. */
export function estimateTable(estimate: Estimate, maxUsd: number | null, colors: Colors): string {
  return [
    meterTable('meter', estimate.lines, colors),
    wrapped(`Estimate: ${pricedSum(estimate.pricedUsd, estimate.lines)}.`),
    wrapped(episodesText(estimate)),
    wrapped(boundText(estimate, maxUsd)),
  ].join('\n');
}

function episodesText({ trainEpisodes, evalEpisodes, baselineEpisodes, warmupEpisodes }: Estimate): string {
  const kinds: [string, number][] = [
    ['training', trainEpisodes],
    ['interim evaluation', evalEpisodes],
    ['held-out', baselineEpisodes],
    ['warm-up', warmupEpisodes],
  ];
  return `Episodes: ${kinds.map(([kind, episodes]) => `${count(episodes)} ${kind}`).join(' · ')}.`;
}

function boundText(estimate: Estimate, maxUsd: number | null): string {
  const { unseenByCap, missingPrices } = boundOf(estimate, maxUsd);
  const prices = `in [pricing] ${missingPrices.join(', ')}`;
  if (maxUsd === null)
    return unseenByCap.length === 0
      ? 'No cap is set; every meter has a price.'
      : `Nothing bounds this spend: no cap is set and prices are unknown. Set [budget] max_usd, or ${prices}.`;
  const above = estimate.pricedUsd > maxUsd ? ' The estimate is above it: the run would wait there for a person.' : '';
  const blind = unseenByCap.length === 0 ? '' : ` It cannot see ${unseenByCap.join(', ')}: they have no price. To let it, set ${prices}.`;
  return `Cap: ${usd(maxUsd)}.${above}${blind}`;
}
