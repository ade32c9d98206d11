import { expect, it } from 'vitest';
import { runawayLimits } from './runaway-limits.ts';

it.each([
  [1800, 20, { maxCalls: 180, maxWallMs: 2_400_000 }],
  [0.5, 1, { maxCalls: 104, maxWallMs: 600_500 }],
  [Number.POSITIVE_INFINITY, 1, { maxCalls: 104 }],
])('%d s and %i turns: %j', (episode_timeout_s, maxTurns, limits) => {
  expect(runawayLimits({ rollout: { episode_timeout_s } }, { maxTurns })).toEqual(limits);
});
