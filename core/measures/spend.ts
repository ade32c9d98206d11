import { METERS, type Meter, type MeterTokens } from './meters.ts';

/** USD per million tokens by meter; null where nobody knows. */
export type Pricing = Readonly<Record<Meter, number | null>>;

/** A meter's tokens with their price; a price or cost of null is unknown, never zero. USD per million tokens. */
export type SpendLine = {
  readonly meter: Meter;
  readonly tokens: number;
  readonly pricePerMtokUsd: number | null;
  readonly usd: number | null;
};

/** What tokens cost, as far as they have prices. */
export type Spend = {
  /** Sum over the lines that have a price. */
  readonly usd: number;
  /** Meters that counted something and have no price: no cap can see them. */
  readonly blindTo: readonly Meter[];
  /** One line per meter that counted something. */
  readonly lines: readonly SpendLine[];
};

/** Cached meters and the full ones that their prices can follow from. */
const CACHED: Partial<Record<Meter, Meter>> = { student_cached_prefill: 'student_prefill', teacher_cached_prefill: 'teacher_prefill' };
/** Meters whose prices are set by hand; with them every meter has one. */
export const FULL_METERS: readonly Meter[] = METERS.filter((meter) => CACHED[meter] === undefined);
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

/** One line per meter, in the order of every table. */
export function spendLines(tokens: MeterTokens, pricing: Pricing): SpendLine[] {
  return METERS.map((meter) => {
    const count = tokens[meter] ?? 0;
    return { meter, tokens: count, pricePerMtokUsd: priceOf(pricing, meter), usd: usdOf(pricing, meter, count) };
  });
}

/** The keys of `[pricing]` that give these meters prices: a cached price follows from its full one. */
export function missingPrices(unpriced: readonly Meter[]): Meter[] {
  return FULL_METERS.filter((meter) => unpriced.includes(meter));
}

/** What lines with a price come to, in USD; what the others cost is unknown. */
export function pricedUsd(lines: readonly SpendLine[]): number {
  return lines.reduce((sum, line) => sum + (line.usd ?? 0), 0);
}

/** Meters of lines without a price. */
export function unpricedIn(lines: readonly SpendLine[]): Meter[] {
  return lines.flatMap(({ meter, pricePerMtokUsd }) => (pricePerMtokUsd === null ? [meter] : []));
}

/** Cost of tokens by meter. Meters that counted something but have no price are named in `blindTo`, not counted as free. */
export function spendOf(pricing: Pricing, meters: MeterTokens): Spend {
  const lines = spendLines(meters, pricing).filter(({ tokens }) => tokens > 0);
  return { usd: pricedUsd(lines), blindTo: unpricedIn(lines), lines };
}

/** Something was counted and none of its meters has a price: what it cost, and what more of it will cost, is unknown, never zero. */
export function isUnknown(counted: { readonly lines: readonly Pick<SpendLine, 'meter'>[]; readonly blindTo: readonly Meter[] }): boolean {
  return counted.lines.length > 0 && counted.lines.every(({ meter }) => counted.blindTo.includes(meter));
}
