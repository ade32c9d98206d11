import { expect, it } from 'vitest';
import { runawayLimits } from './runaway-limits.ts';

it.each([
  [1800, 20, { maxCalls: 180, maxSampledTokens: 50_000, maxWallMs: 2_400_000 }],
  [0.5, 1, { maxCalls: 104, maxSampledTokens: 12_000, maxWallMs: 600_500 }],
  [Number.POSITIVE_INFINITY, 1, { maxCalls: 104, maxSampledTokens: 12_000 }],
])('%d s and %i turns of 1000 tokens in a context of 10,000: %j', (episode_timeout_s, maxTurns, limits) => {
  const config = { rollout: { episode_timeout_s, context_budget_tokens: 10_000 }, sampling: { max_tokens: 1000 } };
  expect(runawayLimits(config, { maxTurns })).toEqual(limits);
});
