import type { Spend } from '../run/results.ts';
import { METERS, type Meter, type MeterTokens } from './meters.ts';

/** USD per million tokens by meter; null where nobody knows. */
export type Pricing = Readonly<Record<Meter, number | null>>;

const CACHED: Partial<Record<Meter, Meter>> = { student_cached_prefill: 'student_prefill', teacher_cached_prefill: 'teacher_prefill' };
/** What a cached prompt token costs, as a share of an uncached one, where no price is stated. */
const CACHED_SHARE = 0.2;

/** USD per million tokens of a meter; a cached meter without a price of its own costs 20 % of its full one. Null is unknown, never zero. */
export function priceOf(pricing: Pricing, meter: Meter): number | null {
  if (pricing[meter] !== null) return pricing[meter];
  const full = CACHED[meter];
  return full === undefined || pricing[full] === null ? null : pricing[full] * CACHED_SHARE;
}

/** Cost of tokens of one meter, in USD; null where it has no price. */
export function usdOf(pricing: Pricing, meter: Meter, tokens: number): number | null {
  const price = priceOf(pricing, meter);
  return price === null ? null : (tokens * price) / 1e6;
}

/** Cost of tokens by meter. Meters that counted something but have no price are named in `blindTo`, not counted as free. */
export function spendOf(pricing: Pricing, meters: MeterTokens): { usd: number; blindTo: readonly Meter[] } {
  let usd = 0;
  const blindTo: Meter[] = [];
  for (const meter of METERS) {
    const tokens = meters[meter] ?? 0;
    if (tokens === 0) continue;
    const price = priceOf(pricing, meter);
    if (price === null) blindTo.push(meter);
    else usd += (tokens * price) / 1e6;
  }
  return { usd, blindTo };
}

/** Tokens were counted and none of them has a price: what they cost, and what a run of them will cost, nobody can say. */
export function isUnknown({ lines, blindTo }: Pick<Spend, 'lines' | 'blindTo'>): boolean {
  return blindTo.length > 0 && lines.every((line) => line.usd === null);
}
