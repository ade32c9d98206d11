import { isUnknown, type SpendLine, unpricedIn } from '../../core/measures/spend.ts';
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
  const blindTo = unpricedIn(lines);
  if (blindTo.length === 0) return usd(pricedUsd);
  if (isUnknown({ lines, blindTo })) return 'unknown, no price is set';
  return `${usd(pricedUsd)} and the unknown cost of ${blindTo.length === 1 ? 'one meter' : `${blindTo.length} meters`}`;
}
