import type { Span } from '../tokens/span.ts';

/** What one trial says about the model's health: its sampled tokens, and −ln p summed over those with a usable log-probability. */
export type TrialTokens = { readonly sampledTokens: number; readonly negLogprobNats: number; readonly scoredTokens: number };

/** Health of a batch; null where nothing was sampled. */
export type BatchHealth = {
  /** Episodes that sampled at least one token. */
  readonly episodes: number;
  readonly sampledTokens: number;
  /** Sampled tokens with a usable log-probability: what the entropy is a mean over. */
  readonly scoredTokens: number;
  /** Mean −ln p over all sampled tokens of the batch: pooled, long episodes weigh more. */
  readonly entropyNatsPerToken: number | null;
  readonly sampledTokensPerEpisode: number | null;
};

export function trialTokens(spans: readonly Pick<Span, 'sampled' | 'logprobs'>[]): TrialTokens {
  let sampledTokens = 0;
  let negLogprobNats = 0;
  let scoredTokens = 0;
  for (const { sampled, logprobs } of spans) {
    sampledTokens += sampled.length;
    for (const logprob of logprobs) {
      if (!Number.isFinite(logprob)) continue;
      negLogprobNats -= logprob;
      scoredTokens++;
    }
  }
  return { sampledTokens, negLogprobNats, scoredTokens };
}

export function batchHealth(trials: readonly TrialTokens[]): BatchHealth {
  const sampling = trials.filter((trial) => trial.sampledTokens > 0);
  const sum = (key: keyof TrialTokens) => sampling.reduce((total, trial) => total + trial[key], 0);
  const sampledTokens = sum('sampledTokens');
  const scoredTokens = sum('scoredTokens');
  return {
    episodes: sampling.length,
    sampledTokens,
    scoredTokens,
    entropyNatsPerToken: scoredTokens === 0 ? null : sum('negLogprobNats') / scoredTokens,
    sampledTokensPerEpisode: sampling.length === 0 ? null : sampledTokens / sampling.length,
  };
}
