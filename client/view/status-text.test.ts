import pc from 'picocolors';
import { expect, it } from 'vitest';
import type { StatePath } from '../../core/ids.ts';
import { metricsRowOf } from '../../core/measures/testing/rows.ts';
import { runSpend, runStatus } from '../testing/runs.ts';
import { statusText } from './status-text.ts';

const plain = pc.createColors(false);

it('a status has the last steps and the spend by meter', () => {
  const status = runStatus({ step: 2, spend: runSpend({ student_sample: [2, 0.3] }, { maxUsd: 2, forecastUsd: 1.5 }) });
  const shown = statusText(
    { status, rows: [metricsRowOf({ step: 1 }), metricsRowOf({ step: 2 })], progress: null, heldUp: [], failure: null },
    plain,
  );
  expect(shown).toMatch(/^ +1 {2}39\.8 % \(51\/128\) .*\n +2 {2}39\.8 % /m);
  expect(shown).toMatch(
    /^student_sample +2,000,000 +\$0\.3000 +\$0\.6000\nSpent: \$0\.6000\.\nCap: \$2\.00\.\nForecast: \$1\.50 at the end\.$/m,
  );
});

it('a run that started from trained weights says from which', () => {
  const source = { runId: 'old', executionId: 'e', state: 'step-0007', savedAtMs: 1 };
  const branch = { statePath: 'tinker://o/weights/step-0007' as StatePath, updates: 7, source };
  expect(statusText({ status: runStatus({ branch }), rows: [], progress: null, heldUp: [], failure: null }, plain)).toContain(
    'started from step-0007 of run old (tinker://o/weights/step-0007)',
  );
});

it('a run that has done nothing yet has neither', () => {
  const shown = statusText({ status: runStatus({}), rows: [], progress: null, heldUp: [], failure: null }, plain);
  expect(shown).not.toMatch(/KL\/token|spend by meter/);
  expect(shown).toContain('Spent: nothing yet.');
});

it('a cancelled run is said to be that, and not to have failed', () => {
  const failure = { type: 'CancelledFailure', message: 'Workflow canceled' };
  const shown = statusText({ status: runStatus({}), rows: [], progress: null, heldUp: [], failure }, plain);
  expect(shown).toMatch(/^cancelled$/m);
  expect(shown).not.toContain('failed');
});
