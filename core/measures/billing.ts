import { inCallOrder, prefixRuns } from '../tokens/datums.ts';
import type { Span } from '../tokens/span.ts';
import type { Meter, MeterTokens } from './meters.ts';

/** Tokens of an episode as they are billed. `uniqueTokens`: each merged sequence once; `cachedTokens`: what prompts sent again. */
export type TokenVolume = { readonly uniqueTokens: number; readonly cachedTokens: number; readonly sampledTokens: number };

/** A charge that cannot be booked. */
export class BillingError extends Error {
  readonly code = 'negative_tokens';

  constructor(meter: Meter, tokens: number) {
    super(`${meter} was charged ${tokens} tokens; a charge is a whole number of at least 0`);
    this.name = 'BillingError';
  }
}

/** Volume of one episode. Calls that extend one another are one sequence; cached volume never goes below zero. */
export function episodeVolume(spans: readonly Pick<Span, 'callIndex' | 'prompt' | 'sampled'>[]): TokenVolume {
  const ordered = inCallOrder(spans);
  const uniqueTokens = prefixRuns(ordered).reduce((sum, run) => sum + run.length, 0);
  const promptTokens = ordered.reduce((sum, span) => sum + span.prompt.length, 0);
  const sampledTokens = ordered.reduce((sum, span) => sum + span.sampled.length, 0);
  return { uniqueTokens, cachedTokens: Math.max(0, promptTokens - uniqueTokens), sampledTokens };
}

export function addVolumes(volumes: readonly TokenVolume[]): TokenVolume {
  const sum = (key: keyof TokenVolume) => volumes.reduce((total, volume) => total + volume[key], 0);
  return { uniqueTokens: sum('uniqueTokens'), cachedTokens: sum('cachedTokens'), sampledTokens: sum('sampledTokens') };
}

/** The meters that sampling a volume charges, by who sampled. */
export function rolloutMeters(volume: TokenVolume, who: 'student' | 'teacher'): MeterTokens {
  return {
    [`${who}_prefill`]: volume.uniqueTokens,
    [`${who}_cached_prefill`]: volume.cachedTokens,
    [`${who}_sample`]: volume.sampledTokens,
  };
}

/** Teacher scoring volume by cache: a service may report nonsense, so hits are held between 0 and what was submitted. */
export function splitCached(submittedTokens: number, reportedHits: number): { uncached: number; cached: number } {
  const submitted = Math.max(0, submittedTokens);
  const cached = Math.min(submitted, Math.max(0, reportedHits));
  return { uncached: submitted - cached, cached };
}

/** The meters of one batch of scoring requests. `cacheHits` is null where the service does not report them: then nothing counts as cached. */
export function scoringMeters(requests: readonly { readonly tokens: number; readonly cacheHits: number | null }[]): MeterTokens {
  const tokens = requests.reduce((sum, request) => sum + request.tokens, 0);
  const hits = requests.reduce((sum, request) => sum + (request.cacheHits ?? 0), 0);
  const { uncached, cached } = splitCached(tokens, hits);
  return { teacher_prefill: uncached, teacher_cached_prefill: cached };
}

/** Books tokens on a meter. @throws BillingError when the count is no whole number of at least 0. */
export function chargeMeter(tokens: MeterTokens, meter: Meter, count: number): MeterTokens {
  if (!Number.isInteger(count) || count < 0) throw new BillingError(meter, count);
  return { ...tokens, [meter]: (tokens[meter] ?? 0) + count };
}

/** True when the spend is strictly above the cap; without a cap never. */
export function isExhausted(totalUsd: number, maxUsd: number | null): boolean {
  return maxUsd !== null && totalUsd > maxUsd;
}
