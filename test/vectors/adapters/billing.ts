import { parseRunConfig } from '../../../core/config/parse.ts';
import {
  addVolumes,
  BillingError,
  chargeMeter,
  episodeVolume,
  isExhausted,
  rolloutMeters,
  scoringMeters,
  splitCached,
  type TokenVolume,
} from '../../../core/measures/billing.ts';
import { METERS, type Meter, type MeterTokens } from '../../../core/measures/meters.ts';
import { type Pricing, spendLines, spendOf } from '../../../core/measures/spend.ts';
import type { FamilyAdapter, Finding } from '../judge.ts';
import { difference } from '../same.ts';
import { type Sections, toToml } from './sections.ts';

const compare = (expected: unknown, actual: unknown): Finding => {
  const found = difference(expected, actual);
  return found === null ? null : { difference: found };
};

type RawSpan = { call_index: number; prompt: number[]; sampled: number[] };
const volumeOf = (spans: RawSpan[]) =>
  episodeVolume(
    spans.map((span) => ({ callIndex: span.call_index, prompt: Int32Array.from(span.prompt), sampled: Int32Array.from(span.sampled) })),
  );
const named = (v: TokenVolume) => ({ unique_tokens: v.uniqueTokens, cached_tokens: v.cachedTokens, sampled_tokens: v.sampledTokens });

export function pricingOf(pricing: Sections[string]): Pricing {
  const parsed = parseRunConfig(toToml({ pricing }), 'pricing');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.config.pricing;
}

type Scoring = { reports_cache: boolean; batches: { tokens: number; cache_hits: number }[][] };
function teacherScoring(input: Scoring, expected: unknown): Finding {
  const hits = (reported: number) => (input.reports_cache ? reported : null);
  const charges = input.batches.map((batch) => scoringMeters(batch.map((r) => ({ tokens: r.tokens, cacheHits: hits(r.cache_hits) }))));
  return compare(expected, { charges });
}

type MetersCase = {
  pricing: Sections[string];
  max_usd: number | null;
  prior_usd: number;
  charges: { meter: Meter; tokens: number }[];
};
function meters(input: MetersCase, expected: unknown): Finding {
  const pricing = pricingOf(input.pricing);
  let tokens: MeterTokens = {};
  const total = () => input.prior_usd + spendOf(pricing, tokens).usd;
  const after = input.charges.map((charge) => {
    try {
      tokens = chargeMeter(tokens, charge.meter, charge.tokens);
      return { total_usd: total(), exhausted: isExhausted(total(), input.max_usd) };
    } catch (error) {
      if (error instanceof BillingError) return { error: error.code, total_usd: total() };
      throw error;
    }
  });
  const lines = spendLines(tokens, pricing).map(({ pricePerMtokUsd, ...line }) => ({ ...line, price_per_mtok: pricePerMtokUsd }));
  return compare(expected, { after_each_charge: after, lines, session_usd: spendOf(pricing, tokens).usd, total_usd: total() });
}

type Rollouts = { sampled_by: 'student' | 'teacher'; episodes: RawSpan[][] };
function rollouts(input: Rollouts, expected: unknown): Finding {
  const charged = rolloutMeters(addVolumes(input.episodes.map(volumeOf)), input.sampled_by);
  return compare(expected, Object.fromEntries(METERS.map((meter) => [meter, charged[meter] ?? 0])));
}

export const billing: FamilyAdapter = {
  family: 'billing',
  kinds: {
    episode: (input: { spans: RawSpan[] }, expected: unknown) => compare(expected, named(volumeOf(input.spans))),
    batch: (input: { episodes: RawSpan[][] }, expected: unknown) => compare(expected, named(addVolumes(input.episodes.map(volumeOf)))),
    split_cached: (input: { submitted: number; cached_reported: number }, expected: unknown) =>
      compare(expected, splitCached(input.submitted, input.cached_reported)),
    teacher_scoring: teacherScoring,
    meters,
    rollout_meters: rollouts,
  },
};
