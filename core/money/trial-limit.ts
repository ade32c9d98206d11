import type { RunConfig } from '../config/schema.ts';
import { episodeVolume } from '../measures/billing.ts';
import { type Pricing, priceOf } from '../measures/spend.ts';
import type { Span } from '../tokens/span.ts';

/** USD per token of a trial, by what the token is. */
export type TokenPrices = {
  /** A token of a merged sequence: its prefill and, for a trial that is trained on, its score and its training. */
  readonly uniqueUsd: number;
  /** A prompt token that was sent before. */
  readonly cachedUsd: number;
  readonly sampledUsd: number;
  /** A token that was paid for but kept for nothing: neither scored nor trained on. */
  readonly wastedUsd: number;
};

/** What a trial has used so far, and what it is about to use. */
export type TrialUse = {
  readonly spans: readonly Pick<Span, 'callIndex' | 'prompt' | 'sampled'>[];
  /** Calls under way: their prompts, and the most that each may sample. */
  readonly inFlight: readonly { readonly promptTokens: number; readonly maxTokens: number }[];
  readonly wasted: { readonly promptTokens: number; readonly sampledTokens: number };
  /** Of the next call. */
  readonly prompt: Int32Array;
};

/** Times that each token is trained on: once, or once per replica. */
export const trainingPasses = ({ loss, topk }: Pick<RunConfig['train'], 'loss' | 'topk'>): number => (loss === 'topk_ce' ? topk : 1);

/** Prices of a trial's tokens; meters without a price count nothing, so a config that limits trials must price them all. */
export function tokenPrices(
  pricing: Pricing,
  who: 'student' | 'teacher',
  train: Pick<RunConfig['train'], 'loss' | 'topk'> | null,
): TokenPrices {
  const usd = (meter: Parameters<typeof priceOf>[1]) => (priceOf(pricing, meter) ?? 0) / 1e6;
  const prefillUsd = usd(`${who}_prefill`);
  const followUsd = train === null ? 0 : usd('teacher_prefill') + usd('student_train') * trainingPasses(train);
  return {
    uniqueUsd: prefillUsd + followUsd,
    cachedUsd: usd(`${who}_cached_prefill`),
    sampledUsd: usd(`${who}_sample`),
    wastedUsd: prefillUsd,
  };
}

/**
 * The most tokens that the trial's next call may sample, so that the whole trial costs no more than `limitUsd` whatever it samples; below
 * 1 when it may not be made at all. A call alone is counted as it will be billed; calls at once may come back in any order, so each is taken
 * to share nothing with another.
 */
export function mostTokens(limitUsd: number, prices: TokenPrices, { spans, inFlight, wasted, prompt }: TrialUse): number {
  const next = { callIndex: Number.POSITIVE_INFINITY, prompt, sampled: new Int32Array(0) };
  const isAlone = inFlight.length === 0;
  const seen = episodeVolume(isAlone ? [...spans, next] : spans);
  const promptTokens = spans.reduce((sum, span) => sum + span.prompt.length, prompt.length);
  const flying = inFlight.reduce((sum, call) => sum + call.promptTokens, 0);
  const mayCome = inFlight.reduce((sum, call) => sum + call.maxTokens, 0);
  const uniqueTokens = seen.uniqueTokens + flying + (isAlone ? 0 : prompt.length);
  const cachedTokens = Math.max(0, promptTokens + flying - uniqueTokens);
  const { uniqueUsd, cachedUsd, sampledUsd, wastedUsd } = prices;
  const sampledTokens = seen.sampledTokens + mayCome;
  const wastedTokens = wasted.promptTokens + wasted.sampledTokens;
  const usd =
    (uniqueTokens + mayCome) * uniqueUsd +
    cachedTokens * cachedUsd +
    (sampledTokens + wasted.sampledTokens) * sampledUsd +
    wastedTokens * wastedUsd;
  const leftUsd = limitUsd - usd;
  const perTokenUsd = uniqueUsd + sampledUsd;
  if (perTokenUsd === 0) return leftUsd < 0 ? 0 : Number.POSITIVE_INFINITY;
  return Math.floor(leftUsd / perTokenUsd + 1e-9);
}
