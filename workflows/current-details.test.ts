import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import type { BlobRef } from '../core/ids.ts';
import { metricsRowOf } from '../core/measures/testing/rows.ts';
import { NOTHING_SENT } from '../core/measures/usage.ts';
import { currentDetails } from './current-details.ts';
import type { RunSpend } from './messages.ts';
import { newFacts } from './run-state.ts';

const NOTHING = { blindTo: [], lines: [], forecastUsd: null, reservedUsd: 0, sent: NOTHING_SENT, lostCalls: 0 };
const SPEND: RunSpend = { ...NOTHING, usd: 0.5, maxUsd: 2 };
const COMMAND = `temporal workflow update execute --workflow-id r --name setBudget --input '{"by":"you","maxUsd":3}'`;
const WAIT = {
  id: 'budget-1',
  kind: 'budget',
  question: 'Step 2 may cost $1; $1.50 of $2.00 are spent.',
  answers: [COMMAND],
  since: '',
} as const;

test('no two dollar signs, which the Web UI would take for a formula', () => {
  const text = currentDetails(newFacts(0), WAIT, SPEND);
  expect(text).not.toContain('$');
  expect(text).toContain('Step 2 may cost USD 1; USD 1.50 of USD 2.00 are spent.');
  expect(text).toContain('Spent USD 0.5000 (cap USD 2.00)');
});

test('a command is broken into short lines, and a shell reads it as the same command', () => {
  const lines = currentDetails(newFacts(0), WAIT, SPEND).split('\n');
  const block = lines.filter((line) => line.startsWith('    '));
  expect(Math.max(...block.map((line) => line.length))).toBeLessThan(60);
  const argumentsOf = (script: string) =>
    execFileSync('sh', ['-c', `temporal() { printf '%s\\n' "$@"; }\n${script}`], { encoding: 'utf8' });
  expect(argumentsOf(block.join('\n'))).toBe(argumentsOf(COMMAND));
});

test('the last five steps stand in columns; what was not measured is a dash', () => {
  const row = (step: number, entropy_per_token: number | null) =>
    metricsRowOf({ step, passed_trials: step, reverse_kl_per_token: 0.5, entropy_per_token });
  const facts = { ...newFacts(0), rows: [1, 2, 3, 4, 5, 6, 107].map((step) => row(step, step === 6 ? null : 0.25)) };
  const table = currentDetails(facts, null, SPEND)
    .split('\n')
    .filter((line) => line.startsWith('    '));
  expect(table).toEqual([
    '    step   solved  KL nats/token  entropy',
    '       3    3/128          0.500    0.250',
    '       4    4/128          0.500    0.250',
    '       5    5/128          0.500    0.250',
    '       6    6/128          0.500        –',
    '     107  107/128          0.500    0.250',
  ]);
});

test('a warm-up says how far it is, while it is', () => {
  const set = { ref: 'sha256:x' as BlobRef, datums: 4, updateUsd: 0, notice: '' };
  const warmup = { set, updates: 3, lossNatsPerToken: 0.1, statePath: null };
  expect(currentDetails({ ...newFacts(0), warmup, phase: 'warmup' }, null, SPEND)).toContain('Warm-up: 3 of ? updates');
  expect(currentDetails({ ...newFacts(0), warmup, phase: 'steps' }, null, SPEND)).not.toContain('Warm-up');
});
