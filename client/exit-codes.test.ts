import { expect, test } from 'vitest';
import { OUTCOMES } from '../core/run/phase.ts';
import { exitCodeOf } from './exit-codes.ts';

const CODES: Record<(typeof OUTCOMES)[number], { plain: number; failOnReject: number }> = {
  promoted: { plain: 0, failOnReject: 0 },
  accepted: { plain: 0, failOnReject: 0 },
  'promotion declined': { plain: 0, failOnReject: 0 },
  rejected: { plain: 0, failOnReject: 3 },
  declined: { plain: 0, failOnReject: 0 },
  stopped: { plain: 0, failOnReject: 0 },
  'stopped by tripwire': { plain: 1, failOnReject: 3 },
  'stopped: nothing to train on': { plain: 1, failOnReject: 1 },
};

test.each(OUTCOMES)('exit code of "%s"', (outcome) => {
  const codes = { plain: exitCodeOf(outcome, false), failOnReject: exitCodeOf(outcome, true) };
  expect(codes).toEqual(CODES[outcome]);
});
