import { beforeAll, describe, expect, it } from 'vitest';
import { seededRandom, seedFromName } from '../random/seeded.ts';
import { type Scenario, type SimulatedGate, simulateGate } from './testing/simulated-students.ts';

/** `npm run bench -- gate` in short: enough students that an interval of 90 % in place of 95 % is noticed. */
const STUDENTS = 600;
const unimproved: Scenario = { tasks: 17, attempts: 3, difficulty: { a: 4, b: 4 }, gain: 0, teacherLead: 0.4 };

const simulate = (name: string, students: number, scenario: Scenario, confidence = 0.95): SimulatedGate[] => {
  const random = seededRandom(seedFromName(name));
  return Array.from({ length: students }, () => simulateGate(scenario, confidence, random));
};
const share = (gates: readonly SimulatedGate[], holds: (gate: SimulatedGate) => boolean) => gates.filter(holds).length / gates.length;

describe('students that did not improve', () => {
  let gates: SimulatedGate[] = [];
  beforeAll(() => {
    gates = simulate('unimproved', STUDENTS, unimproved);
  }, 60_000);

  it('are often promoted by rates alone', () => expect(share(gates, ({ byRates }) => byRates)).toBeGreaterThan(0.09));

  it('are promoted at most once in 20 with a confidence of 0.95', () => {
    expect(share(gates, ({ byEvidence }) => byEvidence)).toBeLessThanOrEqual(0.05);
  });

  it('have an interval that holds the true difference, zero, about as often as it says', () => {
    const misses = share(gates, ({ side }) => side !== 'zero');
    expect(misses).toBeLessThanOrEqual(0.05);
    expect(misses).toBeGreaterThan(0.02); // an interval that is far too wide would never promote anybody
  });
});

it('a student that gained 15 points on 100 tasks is promoted nearly always', () => {
  const gates = simulate('gained', 50, { ...unimproved, tasks: 100, gain: 0.15 });
  expect(share(gates, ({ byEvidence }) => byEvidence)).toBeGreaterThan(0.85);
});
