import type { SpendLine } from '../../core/measures/spend.ts';
import type { Colors } from '../console.ts';
import { count, usd } from './format.ts';
import { table } from './table.ts';

/** Tokens and money by meter, within 80 columns. A price or cost that nobody knows is `unknown`, never zero. */
export function meterTable(title: string, lines: readonly SpendLine[], colors: Colors): string {
  const known = (value: number | null) => (value === null ? colors.yellow('unknown') : usd(value));
  const rows = lines.map((line) => [line.meter, count(Math.round(line.tokens)), known(line.pricePerMtokUsd), known(line.usd)]);
  return table(colors, [title, 'tokens', 'USD per million', 'USD'], rows);
}

/** The sum of what is priced and how much is not in it. Where no price is known there is no sum, not one of zero. */
export function pricedSum(pricedUsd: number, lines: readonly SpendLine[]): string {
  const unpriced = lines.filter((line) => line.usd === null).length;
  if (unpriced === 0) return usd(pricedUsd);
  if (unpriced === lines.length) return 'unknown, no price is set';
  return `${usd(pricedUsd)} and the unknown cost of ${unpriced === 1 ? 'one meter' : `${unpriced} meters`}`;
}
