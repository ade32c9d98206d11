import { isBounded } from '../../core/run/cost-confirmation.ts';
import type { Estimate } from '../../core/run/results.ts';
import type { Colors } from '../console.ts';
import { count, usd } from './format.ts';
import { table } from './table.ts';
import { wrapped } from './wrap.ts';

/** What bounds a run's spend, as data. */
export type Bound = {
  /** USD; null when no cap is set. */
  readonly maxUsd: number | null;
  /** Every meter has a price, or a cap is set. */
  readonly bounded: boolean;
  /** Meters that a cap cannot see. */
  readonly unseenByCap: readonly string[];
  /** The keys of `[pricing]` that make everything priced; a cached price follows from its full one. */
  readonly missingPrices: readonly string[];
};

export function boundOf({ fullyPriced, unpricedMeters }: Estimate, maxUsd: number | null): Bound {
  return {
    maxUsd,
    bounded: isBounded({ fullyPriced, maxUsd }),
    unseenByCap: unpricedMeters,
    missingPrices: unpricedMeters.filter((meter) => !meter.includes('_cached_')),
  };
}

/** The estimate per meter, within 80 columns. A meter without a price says so; its cost is unknown, never zero. */
export function estimateTable(estimate: Estimate, maxUsd: number | null, colors: Colors): string {
  const rows = estimate.lines.map((line) => [
    line.meter,
    count(Math.round(line.tokens)),
    line.pricePerMtokUsd === null ? colors.yellow('unknown') : usd(line.pricePerMtokUsd),
    line.usd === null ? colors.yellow('unknown') : usd(line.usd),
  ]);
  return [
    table(colors, ['meter', 'tokens', 'USD per million', 'USD'], rows),
    wrapped(`Estimate: ${sumText(estimate)}.`),
    wrapped(episodesText(estimate)),
    wrapped(boundText(estimate, maxUsd)),
  ].join('\n');
}

/** Where no price is known there is no sum, not one of zero. */
function sumText({ lines, pricedUsd, unpricedMeters }: Estimate): string {
  const unpriced = unpricedMeters.length;
  if (unpriced === 0) return usd(pricedUsd);
  if (unpriced === lines.length) return 'unknown, no price is set';
  return `${usd(pricedUsd)} and the unknown cost of ${unpriced === 1 ? 'one meter' : `${unpriced} meters`}`;
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
