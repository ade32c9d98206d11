import type { Span } from '../tokens/span.ts';
import { type TrialTally, truncatedCalls } from './batch-stats.ts';
import { episodeVolume, rolloutMeters } from './billing.ts';
import { type TrialTokens, trialTokens } from './health.ts';
import { NOTHING_SENT, type Usage } from './usage.ts';

/** What the calls of one trial come to: numbers small enough for history. */
export type TrialFigures = TrialTokens & Pick<TrialTally, 'calls' | 'truncatedCalls'> & Pick<Usage, 'meters' | 'sent'>;

/** Counts a trial's calls. `maxTokens` is what one call may sample; `who` says whose meters are charged. */
export function trialFigures(
  spans: readonly Pick<Span, 'callIndex' | 'prompt' | 'sampled' | 'logprobs'>[],
  { maxTokens, who }: { readonly maxTokens: number; readonly who: 'student' | 'teacher' },
): TrialFigures {
  const tokens = trialTokens(spans);
  const promptTokens = spans.reduce((sum, { prompt }) => sum + prompt.length, 0);
  return {
    ...tokens,
    calls: spans.length,
    truncatedCalls: truncatedCalls(spans, maxTokens),
    meters: rolloutMeters(episodeVolume(spans), who),
    sent: { ...NOTHING_SENT, promptTokens, sampledTokens: tokens.sampledTokens },
  };
}
