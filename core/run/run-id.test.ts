import { expect, it } from 'vitest';
import { runIdProblem } from './run-id.ts';

it.each(['a', 'my-run.2', 'step-0001', 'x.step-1a', 'a.evaluation', 'x.warmup2', 'A'.repeat(100)])('%s can be the id of a run', (id) => {
  expect(runIdProblem(id)).toBeNull();
});

it.each(['', '.a', 'a/b', '../a', 'a b', 'A'.repeat(101)])('%j is no id', (id) => {
  expect(runIdProblem(id)).toMatch(/^use up to 100 letters/);
});

it.each(['r.step-0001', 'r.step-12345', 'r.eval-teacher', 'r.eval-interim-0004', 'r.warmup', 'r.checkpoints-1'])(
  '%s is the id of a part of a run, and of no run',
  (id) => {
    expect(runIdProblem(id)).toMatch(/at its end is how runs name their own parts/);
  },
);
