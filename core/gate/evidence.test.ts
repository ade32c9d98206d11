import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canConvince, signFlipEvidence } from './evidence.ts';
import { decideGate } from './gate.ts';
import { selectInPlace } from './select.ts';

const gate = { min_teacher_fraction: 0.7, require_no_regression: true, confidence: 0.95 };
const reasonsFor = (differences: readonly number[], confidence = 0.95) =>
  decideGate({ teacher: 0.5, before: 0.4, after: 0.6, gate, evidence: signFlipEvidence(differences, confidence) }).reasons;
const repeat = (n: number, value: number) => new Array<number>(n).fill(value);

describe('the interval', () => {
  /** Every mean of up to 8 thirds is a whole number of these, so that the test by the book below is done in whole numbers. */
  const PER_THIRD = 840;
  const thirds = fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1, maxLength: 8 });
  const confidences = fc.constantFrom(0.5, 0.8, 0.9, 0.95, 0.99);

  /** The two-sided sign-flip test of "the mean is δ", straight from its definition. */
  const rejects = (differences: readonly number[], delta: number, confidence: number) => {
    const shifted = differences.map((d) => d * PER_THIRD - delta);
    const distance = (pattern: number) => Math.abs(shifted.reduce((sum, d, i) => sum + ((pattern >> i) & 1 ? d : -d), 0));
    const patterns = 2 ** shifted.length;
    let asFar = 0;
    for (let pattern = 0; pattern < patterns; pattern++) if (distance(pattern) >= distance(patterns - 1)) asFar++;
    return asFar / patterns <= 1 - confidence + 1e-12;
  };

  it('holds exactly the differences that the test does not reject, its two ends included', () => {
    fc.assert(
      fc.property(thirds, confidences, fc.array(fc.integer({ min: -2520, max: 2520 }), { minLength: 8, maxLength: 8 }), (ds, c, drawn) => {
        const differences = ds.map((d) => d / 3);
        const found = signFlipEvidence(differences, c);
        if (!found) throw new Error('there are differences');
        const toGrid = (rate: number) => rate * 3 * PER_THIRD;
        const ends = [toGrid(found.interval.low), toGrid(found.interval.high)].map(Math.round);
        for (const delta of [...drawn, ...ends.flatMap((end) => [end - 1, end, end + 1]), 0]) {
          if (Math.abs(delta) > 3 * PER_THIRD) continue; // beyond what a difference of rates can be
          const isInside = delta >= toGrid(found.interval.low) - 1e-6 && delta <= toGrid(found.interval.high) + 1e-6;
          expect(isInside, `δ = ${delta} / ${3 * PER_THIRD}`).toBe(!rejects(ds, delta, c));
        }
      }),
      { numRuns: 200 },
    );
  });

  it('mirrors when the differences do', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -3, max: 3 }), { minLength: 1, maxLength: 14 }), confidences, (ds, c) => {
        const one = signFlipEvidence(
          ds.map((d) => d / 3),
          c,
        );
        const other = signFlipEvidence(
          ds.map((d) => -d / 3),
          c,
        );
        expect(other?.interval.low).toBeCloseTo(-(one?.interval.high ?? 9), 12);
        expect(other?.interval.high).toBeCloseTo(-(one?.interval.low ?? 9), 12);
        expect(other?.pValue).toBe(one?.pValue);
      }),
      { numRuns: 50 },
    );
  });
});

describe('the gate with a confidence of 0.95', () => {
  it.each([1, 2, 3, 4, 5])('never has enough of %i tasks, even where each was won outright', (n) => {
    expect(signFlipEvidence(repeat(n, 1), 0.95)?.interval).toEqual({ low: -1, high: 1 });
    expect(reasonsFor(repeat(n, 1))).toEqual(['insufficient_evidence']);
  });

  it.each([6, 7, 14, 15, 40])('has enough of %i tasks that were all won', (n) => {
    expect(reasonsFor(repeat(n, 1 / 3))).toEqual([]);
  });

  it.each([
    ['six gains and a task that stayed as it was', [...repeat(6, 1 / 3), 0], []],
    ['five gains and any number of tasks that stayed as they were', [...repeat(5, 1), ...repeat(9, 0)], ['insufficient_evidence']],
    ['the same, with drawn flips', [...repeat(5, 1), ...repeat(20, 0)], ['insufficient_evidence']],
    ['no difference anywhere, with drawn flips', repeat(30, 0), ['insufficient_evidence']],
    ['only losses', repeat(10, -1 / 3), ['insufficient_evidence']],
  ])('of %s', (_, differences, reasons) => expect(reasonsFor(differences)).toEqual(reasons));

  it('keeps every difference at exactly zero when nothing changed: n tasks, no width, p = 1', () => {
    expect(signFlipEvidence(repeat(10, 0), 0.95)).toMatchObject({ mean: 0, pValue: 1, interval: { low: 0, high: 0 } });
  });

  it('counts a touch as a touch where floats leave a low end of 1.6e-17', () => {
    const differences = [1, 3, -2, -2, -1, 2, 2, 3, 1, 1, 0, 0, 1].map((d) => d / 3);
    const found = signFlipEvidence(differences, 0.8);
    expect(found?.interval.low).toBe(0);
    expect(found?.pValue).toBeGreaterThan(0.2);
    expect(reasonsFor(differences, 0.8)).toEqual(['insufficient_evidence']);
  });
});

it('selectInPlace finds what sorting finds, whatever is equal or infinite', () => {
  const values = fc.array(fc.oneof(fc.integer({ min: -2, max: 2 }), fc.double({ noNaN: true }), fc.constant(Number.NEGATIVE_INFINITY)), {
    minLength: 1,
    maxLength: 50,
  });
  fc.assert(
    fc.property(values, fc.nat(), (list, draw) => {
      const index = draw % list.length;
      const sorted = Float64Array.from(list).sort();
      expect(selectInPlace(Float64Array.from(list), index) === sorted[index]).toBe(true);
    }),
  );
});

it.each([
  [5, 0.95, false],
  [6, 0.95, true],
  [48, 0.95, true],
  [48, 0.999999, false],
])('%d tasks can convince at confidence %d: %s', (tasks, confidence, can) => expect(canConvince(tasks, confidence)).toBe(can));
