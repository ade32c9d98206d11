import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { isKnownRenderer, parseRunConfig, type RunConfig, startProblems } from '../core/config/index.ts';

/** The config that a real run starts from, as it lies there and as a user fills it in. */

const TEXT = readFileSync(join(import.meta.dirname, '../examples/real/run.toml'), 'utf8');

function configOf(text: string): RunConfig {
  const parsed = parseRunConfig(text, 'run.toml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.config;
}

it('passes the start checks as it is, with a cap and without prices', () => {
  const config = configOf(TEXT);
  expect(startProblems(config)).toEqual([]);
  expect(config.budget.max_usd).toBeGreaterThan(0);
  expect(Object.values(config.pricing).every((price) => price === null)).toBe(true);
});

it('passes them with every price and the limit of a trial filled in', () => {
  const limit = TEXT.replace(/^# (?=max_usd_per_trial = )/m, '');
  expect(startProblems(configOf(limit))).toMatchObject([{ field: 'budget.max_usd_per_trial' }]);
  const config = configOf(limit.replace(/^# (\w+) =$/gm, '$1 = 1.5'));
  expect(Object.values(config.pricing).every((price) => price === 1.5)).toBe(true);
  expect(startProblems(config)).toEqual([]);
});

it('names renderers that there are, for its own models, to be turned on', () => {
  const { student, teacher, rollout } = configOf(TEXT.replace(/^# {3}(?=[["])/gm, ''));
  expect(Object.keys(rollout.renderers)).toEqual([student.base_model, teacher.model]);
  expect(Object.values(rollout.renderers).every(isKnownRenderer)).toBe(true);
});

it('lets a turn fit into the context, and an episode into a training sequence', () => {
  const { rollout, sampling, train } = configOf(TEXT);
  expect(sampling.max_tokens).toBeLessThan(rollout.context_budget_tokens);
  expect(train.max_datum_tokens).toBeGreaterThanOrEqual(rollout.context_budget_tokens);
});
