import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseRunConfig } from '../core/config/index.ts';
import type { MetricsRow } from '../core/measures/metrics-row.ts';
import { metricsRowOf } from '../core/measures/testing/rows.ts';
import { closeTrainingStep } from '../core/measures/training-step.ts';
import { NO_USAGE } from '../core/measures/usage.ts';
import { NO_GUARD_STATE } from '../core/run/results.ts';
import { trainedOf, trainingOf } from '../core/run/testing/facts.ts';

/** The reference of a metrics row against a row: every field, its denominator, and what it holds over nothing. */

const PAGE = readFileSync(join(import.meta.dirname, 'metrics.md'), 'utf8');
const [ROW_PART = ''] = PAGE.split('## The other files of a run folder');

type Documented = {
  readonly field: string;
  readonly unit: string;
  readonly over: string;
  readonly overNothing: string;
  readonly meaning: string;
};

const DOCUMENTED: Documented[] = [...ROW_PART.matchAll(/^\| `(\w+)` *\|(.*)\|$/gm)].map(([, field = '', rest = '']) => {
  const [unit = '', over = '', overNothing = '', meaning = ''] = rest.split('|').map((cell) => cell.trim());
  return { field, unit, over: over.replaceAll('`', ''), overNothing, meaning };
});

/** The row of a step in which nothing happened at all. */
function emptyRow(): Readonly<Record<string, unknown>> {
  const parsed = parseRunConfig('student.base_model = "s"\nteacher.model = "t"\nharbor.job_template = "j"\n', 'run.toml');
  if (!parsed.ok) throw new Error('the config of this test is wrong');
  const zeros = { datums: 0, lossTokens: 0, contextTokens: 0, klTokens: 0 };
  const trained = trainedOf({ ...zeros, advantageMean: null, advantageStd: null, reverseKlNatsPerToken: null, losses: [], gradNorms: [] });
  return closeTrainingStep({
    step: 1,
    tasks: 0,
    sampler: { version: 'step-0000', path: 'tinker://m/sampler_weights/step-0000', stalenessSteps: 0 },
    guard: NO_GUARD_STATE,
    money: { spentUsd: 0, stepUsd: [], stepsAhead: 0, evaluationsAheadUsd: 0 },
    trials: [],
    train: { training: trainingOf(), notices: [], trained, ...NO_USAGE, wallMs: 0 },
    wallMs: 0,
    config: parsed.config,
  }).row;
}

it('documents every field of a row, each once, and nothing else', () =>
  expect(DOCUMENTED.map(({ field }) => field).toSorted()).toEqual(Object.keys(metricsRowOf()).toSorted()));

it.each(DOCUMENTED)('$field: its meaning, and a denominator that stands in the row', ({ meaning, over }) => {
  expect(meaning).not.toBe('');
  if (over !== '') expect(Object.keys(metricsRowOf())).toContain(over);
});

it.each(DOCUMENTED)('$field over nothing holds what the page says', ({ field, over, overNothing }) => {
  const row = emptyRow();
  if (over !== '') expect([0, null]).toContain(row[over]);
  const held = row[field] === null ? 'null' : over === '' ? '' : `${row[field]}, read as null`;
  expect(overNothing).toBe(held);
});

it.each(DOCUMENTED)('$field: what is measured has a unit, texts and lists have none', ({ field, unit }) => {
  const value = metricsRowOf()[field as keyof MetricsRow];
  const isMeasured = typeof value !== 'string' && !Array.isArray(value) && field !== 'step';
  expect(unit !== '').toBe(isMeasured);
});
