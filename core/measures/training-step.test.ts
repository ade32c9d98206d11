import { describe, expect, it } from 'vitest';
import { parseRunConfig } from '../config/index.ts';
import type { TrialId } from '../ids.ts';
import type { TrainResult } from '../run/results.ts';
import { NO_GUARD_STATE } from '../run/results.ts';
import type { TrialSummary } from '../run/trial.ts';
import { closeTrainingStep } from './training-step.ts';

const parsed = parseRunConfig(
  '[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n[pricing]\nstudent_sample=1\n',
  'run.toml',
);
if (!parsed.ok) throw new Error('the config of this test must be valid');
const { config } = parsed;

const trial = (over: Partial<TrialSummary> = {}): TrialSummary => ({
  trialId: 'x' as TrialId,
  taskId: 'a',
  spans: null,
  reward: 1,
  executed: true,
  passed: true,
  retry: 'never',
  gradedScore: null,
  exceptionType: null,
  exceptionMessage: null,
  stopReason: null,
  calls: 1,
  sampledTokens: 10,
  negLogprobNats: 5,
  scoredTokens: 10,
  maskedTokens: 0,
  overflow: false,
  lengthStops: 0,
  fragments: 1,
  meters: { student_sample: 10 },
  wallMs: 1,
  ...over,
});
const train = (over: Partial<TrainResult> = {}): TrainResult => ({
  nextSeqId: 3,
  updates: 1,
  datums: 1,
  lossTokens: 10,
  contextTokens: 5,
  loss: 1,
  gradNorm: 1,
  reverseKlNatsPerToken: 0.5,
  advantageMean: 0,
  advantageStd: 1,
  clippedTokens: 0,
  mismatchDrops: 0,
  meters: {},
  wallMs: 1,
  ...over,
});
const close = (trials: TrialSummary[], over: Partial<Parameters<typeof closeTrainingStep>[0]> = {}) =>
  closeTrainingStep({
    step: 1,
    sampler: 'step-0000',
    guard: NO_GUARD_STATE,
    trials: trials.map((t) => ({ trial: t, score: null })),
    train: train(),
    wallMs: 9,
    config,
    ...over,
  });

it('counts rates over executed trials; those that failed on infrastructure are counted apart', () => {
  const { row } = close([
    trial(),
    trial({ passed: false, reward: 0 }),
    trial({ executed: false, passed: false, reward: null, sampledTokens: 90 }),
  ]);
  expect(row).toMatchObject({
    trials: 3,
    executedTrials: 2,
    passedTrials: 1,
    infraFailedTrials: 1,
    solveRate: 0.5,
    sampledTokensPerEpisode: 10,
  });
});

it('a step of no executed trial has no rate, which is not zero', () => {
  expect(close([trial({ executed: false, passed: false })]).row).toMatchObject({ solveRate: null, entropyNatsPerToken: null });
});

it('money is paid for failed trials as well', () => {
  expect(close([trial(), trial({ executed: false })]).row.usd).toBeCloseTo(20e-6, 12);
});

describe('guards', () => {
  it('the second kill in a row stops the run, and the reason names the config key', () => {
    const first = close([trial()]).guard;
    const collapsed = [trial({ negLogprobNats: 0.5 })];
    const second = close(collapsed, { step: 2, guard: first });
    expect(second).toMatchObject({ kill: null, row: { warnings: [expect.stringMatching(/entropy_kill_frac/)] } });
    expect(close(collapsed, { step: 3, guard: second.guard }).kill).toMatch(/entropy is at 0\.10/);
  });

  it.each([
    ['no update', train({ updates: 0 })],
    ['no datum', train({ datums: 0 })],
  ])('a step with %s is empty, the next good one ends the streak', (_, empty) => {
    const result = close([trial()], { train: empty });
    expect(result).toMatchObject({ starved: false, guard: { emptyStreak: 1 } });
    expect(close([trial()], { train: empty, guard: result.guard }).starved).toBe(true);
    expect(close([trial()], { guard: result.guard })).toMatchObject({ starved: false, guard: { emptyStreak: 0 } });
  });
});
