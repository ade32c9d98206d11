import { expect, it } from 'vitest';
import type { EvalLabel, EvalResult } from '../run/results.ts';
import { evaluationOf } from '../run/testing/facts.ts';
import { type CostsSoFar, evaluationsAheadUsd, evaluationUsd } from './evaluations-ahead.ts';

const done = (label: EvalLabel, usd: number, source: EvalResult['source'] = 'measured') => evaluationOf({ label, usd, source });
const nothing: CostsSoFar = { evaluations: [], interim: [], rows: [] };
const rows = [
  { usd: 3, trials: 10 },
  { usd: 5, trials: 10 },
];

it.each<[string, EvalLabel, CostsSoFar, number]>([
  ['nothing is known', 'student-after', nothing, 0],
  ['only steps were paid for', 'student-after', { ...nothing, rows }, 8],
  ['the student was measured', 'student-after', { ...nothing, rows, evaluations: [done('teacher', 9), done('student-before', 2)] }, 4],
  ['an interim evaluation was the only one of the student', 'interim-0004', { ...nothing, rows, interim: [done('interim-0002', 3)] }, 6],
  ['the teacher was measured', 'teacher', { ...nothing, evaluations: [done('teacher', 9), done('student-before', 2)] }, 18],
  [
    'an import cost nothing, which says nothing',
    'student-after',
    { ...nothing, rows, evaluations: [done('student-before', 0, 'imported')] },
    8,
  ],
])('an evaluation of 20 trials when %s', (_, label, soFar, usd) => expect(evaluationUsd(label, 20, soFar)).toBeCloseTo(usd));

const plan = { steps: 9, gateK: 1, interim: { every: 0, tasks: 4, k: 5 }, nTrain: 2, nHoldout: 20 };
const baselines = [done('teacher', 9), done('student-before', 2)];

it('what is ahead is the student after training, and a teacher that was put off', () => {
  expect(evaluationsAheadUsd(plan, { ...nothing, evaluations: baselines })).toBeCloseTo(4);
  expect(evaluationsAheadUsd(plan, { ...nothing, rows, evaluations: baselines.slice(1) })).toBeCloseTo(4 + 20 * 0.4);
  expect(evaluationsAheadUsd(plan, { ...nothing, evaluations: [...baselines, done('student-after', 3)] })).toBe(0);
});

it('and the interim evaluations that are left, on at most the tasks there are', () => {
  const interim = { ...plan, interim: { ...plan.interim, every: 2 } };
  const each = 2 * 5 * 0.2;
  expect(evaluationsAheadUsd(interim, { ...nothing, evaluations: baselines })).toBeCloseTo(4 + 4 * each);
  const two = [done('interim-0004', 2)]; // older ones may be forgotten
  expect(evaluationsAheadUsd(interim, { ...nothing, evaluations: baselines, interim: two })).toBeCloseTo(4 + 2 * each);
});
