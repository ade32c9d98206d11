import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../random/seeded.ts';
import { gateEvidence, signFlipEvidence } from './evidence.ts';
import { decideGate, type GateInput } from './gate.ts';

const rule = { min_teacher_fraction: 0.7, require_no_regression: true, confidence: null };
const decide = (over: Partial<GateInput>) => decideGate({ teacher: 0.6, before: 0.2, after: 0.5, gate: rule, evidence: null, ...over });

describe('decideGate', () => {
  it('refuses a teacher that solves nothing, even where nothing regressed', () => {
    expect(decide({ teacher: 0, before: 0, after: 0 })).toMatchObject({ accepted: false, reasons: ['teacher_solves_nothing'] });
  });

  it.each(['teacher', 'before', 'after'] as const)('never accepts when %s was not measured', (rate) => {
    expect(decide({ [rate]: null })).toMatchObject({ accepted: false, reasons: ['not_measured'] });
  });

  it.each([
    ['improved beyond noise', [0.6, 0.5, 0.7, 0.4, 0.5, 0.6, 0.5, 0.4], []],
    ['improved, but not beyond noise', [0.6, -0.5, 0.7, -0.4, 0.5, -0.2, 0.1, -0.1], ['insufficient_evidence']],
    ['the same everywhere', [0, 0, 0, 0, 0, 0, 0, 0], ['insufficient_evidence']],
  ])('with a confidence set, a student that %s', (_, differences, reasons) => {
    const gate = { ...rule, confidence: 0.95 };
    expect(decide({ gate, evidence: signFlipEvidence(differences, 0.95) }).reasons).toEqual(reasons);
  });

  it('with a confidence set, no evidence at all is insufficient', () => {
    expect(decide({ gate: { ...rule, confidence: 0.95 } }).reasons).toEqual(['insufficient_evidence']);
  });
});

describe('signFlipEvidence', () => {
  it('is exact for few tasks: five equal gains have p = 2/32 and no bounded interval at 95 %', () => {
    expect(signFlipEvidence([0.5, 0.5, 0.5, 0.5, 0.5], 0.95)).toMatchObject({
      n: 5,
      mean: 0.5,
      pValue: 2 / 32,
      interval: { low: -1, high: 1 },
      method: 'exact',
    });
    expect(signFlipEvidence([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], 0.95)).toMatchObject({ pValue: 2 / 64, interval: { low: 0.5, high: 0.5 } });
  });

  it('excludes zero exactly when the test rejects', () => {
    const difference = fc.integer({ min: -3, max: 3 }).map((n) => n / 3);
    fc.assert(
      fc.property(fc.array(difference, { minLength: 1, maxLength: 9 }), (differences) => {
        const found = signFlipEvidence(differences, 0.95);
        if (!found) throw new Error('there are differences');
        const excludes = found.interval.low > 1e-12 || found.interval.high < -1e-12;
        expect(excludes).toBe(found.pValue <= 0.05 + 1e-12);
        expect(found.interval.low).toBeLessThanOrEqual(found.mean + 1e-12);
        expect(found.interval.high).toBeGreaterThanOrEqual(found.mean - 1e-12);
      }),
    );
  });

  it('draws flips for many tasks, the same ones every time, and agrees with the exact test', () => {
    const differences = Array.from({ length: 14 }, (_, i) => ((i * 7) % 5) / 5 - 0.2);
    const exact = signFlipEvidence(differences, 0.95);
    const drawn = signFlipEvidence([...differences, 0], 0.95);
    expect(drawn).toMatchObject({ n: 15, method: 'monte-carlo' });
    expect(drawn).toEqual(signFlipEvidence([...differences, 0], 0.95));
    expect(Math.abs((drawn?.pValue ?? 9) - (exact?.pValue ?? -9))).toBeLessThan(0.01);
  });

  it('says "improved" of at most 5 % of students that did not', () => {
    const random = seededRandom(5n);
    const passes = (chance: number) => [0, 1, 2].filter(() => random.below(1000) < chance * 1000).length / 3;
    let improved = 0;
    const students = 400;
    for (let s = 0; s < students; s++) {
      const chances = Array.from({ length: 10 }, () => random.below(1000) / 1000);
      const found = signFlipEvidence(
        chances.map((chance) => passes(chance) - passes(chance)),
        0.95,
      );
      if (found && found.interval.low > 0) improved++;
    }
    expect(improved / students).toBeLessThanOrEqual(0.05);
  });

  it('has nothing to say about nothing', () => expect(signFlipEvidence([], 0.95)).toBeNull());
});

it('gateEvidence pairs tasks that were measured on both sides and takes the share of the teacher', () => {
  const tasks = [
    { taskId: 'a', teacher: 1, before: 0, after: 1 },
    { taskId: 'b', teacher: null, before: 0.5, after: 0.5 },
    { taskId: 'c', teacher: 1, before: null, after: 0.4 },
    { taskId: 'd', teacher: 1, before: 0, after: null },
  ];
  const found = gateEvidence(tasks, { confidence: 0.95, teacherFraction: 0.7 });
  expect(found.afterMinusBefore).toMatchObject({ n: 2, mean: 0.5 });
  expect(found.afterMinusTeacherShare?.n).toBe(2);
  expect(found.afterMinusTeacherShare?.mean).toBeCloseTo(0, 12);
});
