import { describe, expect, it } from 'vitest';
import { parseRunConfig } from '../config/index.ts';
import { type MoneySoFar, NO_GUARD_STATE, type TrainResult } from '../run/results.ts';
import { trainedOf, trainingOf, trialOf } from '../run/testing/facts.ts';
import type { TrialSummary } from '../run/trial.ts';
import type { TrainedBatch } from './metrics-row.ts';
import { solveRateOf } from './rates.ts';
import { closeTrainingStep } from './training-step.ts';
import { NO_USAGE } from './usage.ts';

const parsed = parseRunConfig(
  '[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n[pricing]\nstudent_sample=1\n',
  'run.toml',
);
if (!parsed.ok) throw new Error('the config of this test must be valid');
const { config } = parsed;

const trial = (over: Partial<TrialSummary> = {}) => trialOf({ stopReason: null, ...over });
const train = (over: Partial<TrainedBatch> = {}): TrainResult => ({
  training: trainingOf(),
  notices: [],
  trained: trainedOf(over),
  ...NO_USAGE,
  wallMs: 1,
});
const MONEY: MoneySoFar = { spentUsd: 0, stepUsd: [], stepsAhead: 0, evaluationsAheadUsd: 0 };
const close = (trials: TrialSummary[], over: Partial<Parameters<typeof closeTrainingStep>[0]> = {}) =>
  closeTrainingStep({
    step: 1,
    tasks: 1,
    sampler: { version: 'step-0000', path: 'tinker://s/sampler_weights/step-0000', stalenessSteps: 0 },
    guard: NO_GUARD_STATE,
    money: MONEY,
    trials: trials.map((t) => ({ trial: t, score: null })),
    train: train(),
    wallMs: 9,
    config,
    ...over,
  });

it('counts rates over executed trials; what was sampled counts, whatever the grader said', () => {
  const { row } = close([
    trial(),
    trial({ passed: false, reward: 0 }),
    trial({ executed: false, passed: false, reward: null, sampledTokens: 40 }),
  ]);
  expect(row).toMatchObject({
    trials: 3,
    executed_trials: 2,
    passed_trials: 1,
    infra_failed_trials: 1,
    solve_rate: 0.5,
    mean_generation_tokens: 20,
    generation_episodes: 3,
  });
});

it('a step of no executed trial has no rate, which is not zero', () => {
  const { row } = close([trial({ executed: false, passed: false, sampledTokens: 0, scoredTokens: 0, negLogprobNats: 0 })]);
  expect(row).toMatchObject({ solve_rate: 0, executed_trials: 0, entropy_per_token: null });
  expect(solveRateOf(row)).toBeNull();
});

it('tells spend and forecast from what the run had cost before', () => {
  const money = { spentUsd: 1, stepUsd: [0.5], stepsAhead: 2, evaluationsAheadUsd: 0.25 };
  const result = close([trial({ meters: { student_sample: 1_500_000 } })], { money });
  expect(result.row).toMatchObject({ usd: 1.5, cumulative_usd: 2.5, forecast_usd: 2.5 + 2 * 1 + 0.25 });
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
    ['no update', train({ losses: [] })],
    ['no datum', train({ datums: 0 })],
  ])('a step with %s is empty, the next good one ends the streak', (_, empty) => {
    const result = close([trial()], { train: empty });
    expect(result).toMatchObject({ starved: false, guard: { emptyStreak: 1 } });
    expect(close([trial()], { train: empty, guard: result.guard }).starved).toBe(true);
    expect(close([trial()], { guard: result.guard })).toMatchObject({ starved: false, guard: { emptyStreak: 0 } });
  });
});
