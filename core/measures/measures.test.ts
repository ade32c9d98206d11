import { describe, expect, it } from 'vitest';
import { parseRunConfig } from '../config/parse.ts';
import { NO_GUARD_STATE } from '../run/results.ts';
import { batchStats } from './batch-stats.ts';
import { checkTripwire, countEmptyStep, guardsAfterKill } from './guards.ts';
import { batchHealth, trialTokens } from './health.ts';
import { readRate, requireMeasured, solveRate } from './rates.ts';

const parsed = parseRunConfig('[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n', 'run.toml');
if (!parsed.ok) throw new Error('the minimal config is fine');
const { tripwire } = parsed.config;
const healthy = { entropyNatsPerToken: 0.2, sampledTokensPerEpisode: 1000 };
const collapsed = { entropyNatsPerToken: 0.01, sampledTokensPerEpisode: 1000 };

describe('guards', () => {
  it('keep the streak of a run that goes on in another process, and forget it only after a kill', () => {
    const first = checkTripwire(NO_GUARD_STATE, 0, healthy, tripwire).guard;
    const second = checkTripwire(first, 1, collapsed, tripwire);
    expect(second).toMatchObject({ kill: false, guard: { killStreak: 1 } });
    const restored = JSON.parse(JSON.stringify(second.guard));
    const third = checkTripwire(restored, 2, collapsed, tripwire);
    expect(third.kill).toBe(true);
    expect(checkTripwire(guardsAfterKill(third.guard), 3, collapsed, tripwire)).toMatchObject({ kill: false, guard: { killStreak: 1 } });
  });

  it('compare the baseline step with itself when it is run again', () => {
    const { guard } = checkTripwire(NO_GUARD_STATE, 0, healthy, tripwire);
    expect(checkTripwire(guard, 0, collapsed, tripwire).breaches).toMatchObject([{ field: 'tripwire.entropy_kill_frac' }]);
  });

  it('count a step that trained nothing as empty, whatever it sampled, and stop at the second in a row', () => {
    const one = countEmptyStep(NO_GUARD_STATE, 0);
    expect(one.stop).toBe(false);
    expect(countEmptyStep(one.guard, 0).stop).toBe(true);
    expect(countEmptyStep(countEmptyStep(one.guard, 3).guard, 0).stop).toBe(false);
  });
});

describe('health', () => {
  it('leaves tokens without a usable log-probability out of the entropy, not out of the length', () => {
    const span = { sampled: Int32Array.of(1, 2, 3), logprobs: Float64Array.of(-0.5, Number.NaN, -0.1) };
    expect(batchHealth([trialTokens([span])])).toMatchObject({ entropyNatsPerToken: 0.3, sampledTokensPerEpisode: 3, sampledTokens: 3 });
  });
});

describe('rates', () => {
  it('are null over nothing, in views and guards alike', () => {
    expect(solveRate(0, 0)).toBeNull();
    expect(solveRate(0, 2)).toBe(0);
    expect(readRate({ rate: 0, over: 0 })).toBeNull();
    expect(readRate({ rate: 0, over: 1 })).toBe(0);
  });

  it('an evaluation that executed none of its trials is an error, not a rate', () => {
    expect(() => requireMeasured({ trials: 6, executedTrials: 0 })).toThrow(/none of the 6 trials was executed/);
    expect(() => requireMeasured({ trials: 6, executedTrials: 1 })).not.toThrow();
  });

  it('a failed sibling never moves the solve rate of the executed ones', () => {
    const trial = { reward: 1, passed: true, executed: true, stopReason: 'submitted', gradedScore: null, calls: 1, truncatedCalls: 0 };
    const failed = { ...trial, reward: null, passed: false, executed: false };
    expect(batchStats([trial, failed])).toMatchObject({ solveRate: 1, rawSolveRate: 0.5, executedTrials: 1, infraFailedTrials: 1 });
  });
});
