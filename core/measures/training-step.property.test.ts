import fc from 'fast-check';
import { expect, it } from 'vitest';
import { parseRunConfig } from '../config/index.ts';
import type { MoneySoFar, TrainResult } from '../run/results.ts';
import { NO_GUARD_STATE } from '../run/results.ts';
import { inSlotOrder } from '../run/slots.ts';
import { trainedOf, trainingOf } from '../run/testing/facts.ts';
import { addMeters, METERS, type MeterTokens } from './meters.ts';
import { type ClosedScore, type ClosedTrial, closeTrainingStep } from './training-step.ts';
import { NO_USAGE } from './usage.ts';

const PRICES = METERS.map((meter, i) => `${meter} = ${(i + 1) / 7}`).join('\n');
const parsed = parseRunConfig(
  `[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n[pricing]\n${PRICES}\n`,
  'run.toml',
);
if (!parsed.ok) throw new Error('the config of this test must be valid');
const { config } = parsed;

const count = fc.integer({ min: 0, max: 5000 });
const meters = fc.record(Object.fromEntries(METERS.map((meter) => [meter, count]))) as fc.Arbitrary<MeterTokens>;
const nothingElse = { sent: fc.constant(NO_USAGE.sent), lost: fc.constant(NO_USAGE.lost) };
const trial: fc.Arbitrary<ClosedTrial> = fc.record({
  reward: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  passed: fc.boolean(),
  executed: fc.boolean(),
  stopReason: fc.constantFrom(null, 'submitted', 'max_turns', 'context_overflow'),
  gradedScore: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  calls: count,
  truncatedCalls: count,
  sampledTokens: count,
  negLogprobNats: fc.double({ min: 0, max: 5000, noNaN: true }),
  scoredTokens: count,
  maskedTokens: count,
  overflow: fc.boolean(),
  fragmentCauses: fc.dictionary(fc.constantFrom('retry', 'branch', 'compaction'), count),
  unreadableCalls: count,
  lookAlikes: count,
  usd: fc.double({ min: 0, max: 5, noNaN: true }),
  replayedTokens: count,
  reboughtTokens: count,
  meters,
  ...nothingElse,
});
const score: fc.Arbitrary<ClosedScore> = fc.record({
  datums: count,
  fragments: count,
  overflowDropped: fc.boolean(),
  overlongDropped: fc.boolean(),
  usd: fc.double({ min: 0, max: 5, noNaN: true }),
  trainUsd: fc.double({ min: 0, max: 5, noNaN: true }),
  meters,
  ...nothingElse,
});
const batch = fc
  .array(fc.record({ trial, score: fc.option(score) }), { minLength: 1, maxLength: 12 })
  .map((trials) => trials.map((one, i) => ({ slot: `run-s0001-${String(i).padStart(3, '0')}-0`, ...one })));

const TRAIN: TrainResult = {
  training: trainingOf(),
  notices: [],
  trained: trainedOf(),
  ...NO_USAGE,
  meters: { student_train: 15 },
  wallMs: 1,
};
const MONEY: MoneySoFar = { spentUsd: 0.1, stepUsd: [0.1], stepsAhead: 2, evaluationsAheadUsd: 0.3 };
type Slotted = { readonly slot: string; readonly trial: ClosedTrial; readonly score: ClosedScore | null };
const close = (trials: readonly Slotted[]) =>
  closeTrainingStep({
    step: 1,
    tasks: 2,
    sampler: { version: 'step-0000', path: 'tinker://s/sampler_weights/step-0000', stalenessSteps: 0 },
    guard: NO_GUARD_STATE,
    money: MONEY,
    trials,
    train: TRAIN,
    wallMs: 9,
    config,
  });

it('in whatever order trials ended, the row is the same to the last bit', () => {
  fc.assert(
    fc.property(
      batch.chain((trials) => fc.tuple(fc.constant(trials), fc.shuffledSubarray(trials, { minLength: trials.length }))),
      ([trials, ended]) => {
        expect(close(inSlotOrder(ended))).toEqual(close(trials));
      },
    ),
  );
});

it('what attempts used is the same sum, whichever of them came first', () => {
  fc.assert(
    fc.property(batch, fc.array(meters, { minLength: 2, maxLength: 4 }), fc.nat(), (trials, attempts, turn) => {
      const paid = (order: readonly MeterTokens[]) =>
        close(trials.map((one, i) => (i === 0 ? { ...one, trial: { ...one.trial, meters: addMeters(...order) } } : one)));
      const by = turn % attempts.length;
      expect(paid([...attempts.slice(by), ...attempts.slice(0, by)])).toEqual(paid(attempts));
    }),
  );
});

it('the meters of a row are the sums over trials, scores and training, and its cost is their price', () => {
  fc.assert(
    fc.property(batch, (trials) => {
      const { row } = close(trials);
      let usd = 0;
      METERS.forEach((meter, i) => {
        const parts = [TRAIN.meters, ...trials.flatMap(({ trial, score }) => [trial.meters, ...(score ? [score.meters] : [])])];
        const tokens = parts.reduce((sum, part) => sum + (part[meter] ?? 0), 0);
        expect(row[`${meter}_tokens`]).toBe(tokens);
        usd += (tokens * (i + 1)) / 7 / 1e6;
      });
      expect(row.usd).toBeCloseTo(usd, 9);
      expect(row.cumulative_usd).toBe(0.1 + row.usd);
    }),
  );
});

it('every rate can be made again from its numerator and denominator', () => {
  fc.assert(
    fc.property(batch, (trials) => {
      const { row } = close(trials);
      const rate = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);
      expect(row.solve_rate).toBe(rate(row.passed_trials, row.executed_trials));
      expect(row.raw_solve_rate).toBe(rate(row.passed_trials, row.trials));
      expect(row.executed_trials + row.infra_failed_trials).toBe(row.trials);
      expect(row.fragmentation_rate).toBe(rate(row.fragments, row.built_datums));
      const opened = (counts: Readonly<Record<string, number>>) => Object.values(counts).reduce((sum, count) => sum + count, 0);
      expect(opened(row.fragment_causes)).toBe(trials.reduce((sum, { trial }) => sum + opened(trial.fragmentCauses), 0));
      const { submitted = 0 } = row.stop_reason_counts;
      expect(row.scaffold_loss_rate).toBeCloseTo(rate(row.stop_reason_trials - submitted, row.stop_reason_trials), 12);
      if (row.mean_generation_tokens !== null)
        expect(row.mean_generation_tokens * row.generation_episodes).toBeCloseTo(
          trials.reduce((sum, { trial }) => sum + trial.sampledTokens, 0),
          6,
        );
    }),
  );
});
