import type { Estimate } from '../../core/run/results.ts';
import type { Colors } from '../console.ts';
import { count, usd } from './format.ts';
import { table } from './table.ts';

/** The estimate per meter. A meter without a price says so; its cost is unknown, never zero. */
export function estimateTable(estimate: Estimate, maxUsd: number | null, colors: Colors): string {
  const rows = estimate.lines.map((line) => [
    line.meter,
    count(Math.round(line.tokens)),
    line.pricePerMtokUsd === null ? colors.yellow('unknown') : usd(line.pricePerMtokUsd),
    line.usd === null ? colors.yellow('unknown') : usd(line.usd),
  ]);
  const { fullyPriced, pricedUsd, unpricedMeters, trainEpisodes, evalEpisodes } = estimate;
  const sum = `${usd(pricedUsd)}${fullyPriced ? '' : ` and the unknown cost of ${unpricedMeters.join(', ')}`}`;
  const blind = maxUsd !== null && !fullyPriced ? ` It cannot see ${unpricedMeters.join(', ')}: they have no price.` : '';
  return [
    table(colors, ['meter', 'tokens', 'USD per million', 'USD'], rows),
    `Estimate: ${sum} for ${count(trainEpisodes)} training and ${count(evalEpisodes)} evaluation episodes.`,
    maxUsd === null ? 'No cap is set.' : `Cap: ${usd(maxUsd)}.${blind}`,
  ].join('\n');
}
