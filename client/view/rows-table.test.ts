import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import type { MetricsRow } from '../../core/measures/metrics-row.ts';
import { metricsRowOf } from '../../core/measures/testing/rows.ts';
import { rowsTable } from './rows-table.ts';

const shown = (...rows: readonly Partial<MetricsRow>[]) => rowsTable(rows.map(metricsRowOf), pc.createColors(false));
const [LEARNING, WORK] = [0, 1];
/** The cells of a table's rows, the head first; legends have no wide gaps and so no cells. */
function cells(text: string, part: number): string[][] {
  const lines = text.split('\n\n')[part]?.split('\n') ?? [];
  return lines.map((line) => line.trim().split(/ {2,}/)).filter((row) => row.length > 1);
}

const NOTHING: Partial<MetricsRow> = {
  executed_trials: 0,
  passed_trials: 0,
  solve_rate: 0,
  graded_trials: 0,
  graded_solve_rate: 0,
  reverse_kl_per_token: null,
  entropy_per_token: null,
  entropy_ratio: null,
  mean_generation_tokens: null,
  generation_tokens_ratio: null,
  forecast_usd: null,
};

it('shows what a step learned, and what it did and cost', () => {
  const text = shown({ step: 3, optimizer_updates: 4, sampler_staleness_steps: 1 });
  expect(cells(text, LEARNING)).toEqual([
    ['step', 'solved', 'KL/token', 'entropy', 'length'],
    ['3', '39.8 % (51/128)', '0.432', '0.500 ×1.00', '24.0 ×1.00'],
  ]);
  expect(cells(text, WORK)).toEqual([
    ['step', 'updates', 'sampler age', 'time', 'USD', 'forecast USD'],
    ['3', '4', '1', '6.0 s', '$0.0020', '$0.0300'],
  ]);
});

it('shows the last eight steps, the newest last', () => {
  const text = shown(...Array.from({ length: 11 }, (_, index) => ({ step: index + 1 })));
  for (const part of [LEARNING, WORK])
    expect(cells(text, part).map(([step]) => step)).toEqual(['step', '4', '5', '6', '7', '8', '9', '10', '11']);
});

it('is empty without a step', () => expect(shown()).toBe(''));

describe('what was not measured', () => {
  it('is a dash, never a zero', () => {
    expect(cells(shown({ ...NOTHING, step: 2 }), LEARNING)[1]).toEqual(['2', '– (0/0)', '–', '–', '–']);
    expect(cells(shown({ ...NOTHING, step: 2 }), WORK)[1]?.at(-1)).toBe('–');
  });

  it('is told from a rate of zero', () => {
    expect(cells(shown({ passed_trials: 0, solve_rate: 0 }), LEARNING)[1]?.[1]).toBe('0.0 % (0/128)');
  });

  it('graded scores have a column only where there is one, and a dash in steps without', () => {
    const text = shown({ graded_trials: 120, graded_solve_rate: 0.452 }, NOTHING, { graded_trials: 7, graded_solve_rate: 0 });
    expect(cells(text, LEARNING).map((row) => row[2])).toEqual(['graded', '45.2 % (120)', '– (0)', '0.0 % (7)']);
  });
});

describe('money without prices', () => {
  const unpriced = (...unpriced_meters: MetricsRow['unpriced_meters']) => ({ unpriced_meters, usd: 0, forecast_usd: 0 });
  const sums = (row: Partial<MetricsRow>) => cells(shown(row), WORK)[1]?.slice(-2);

  it('is unknown where no counted meter has one', () =>
    expect(sums(unpriced('student_sample', 'student_train', 'teacher_prefill'))).toEqual(['unknown', 'unknown']));

  it('is a part of the sum where some have one', () => {
    expect(sums({ unpriced_meters: ['teacher_prefill'] })).toEqual(['$0.0020 + ?', '$0.0300 + ?']);
    expect(shown({ unpriced_meters: ['teacher_prefill'] })).toContain('+ ? is what has no price.');
  });

  it('is a part of the sum at a price of zero too: only what nobody can say is unknown', () =>
    expect(sums(unpriced('teacher_prefill'))).toEqual(['$0.0000 + ?', '$0.0000 + ?']));

  it('zero is said where everything is priced at it', () => expect(sums(unpriced())).toEqual(['$0.0000', '$0.0000']));
});

it('stays within 80 columns in a large run', () => {
  const text = shown({
    step: 1234,
    trials: 1280,
    executed_trials: 1280,
    passed_trials: 512,
    solve_rate: 0.4,
    graded_trials: 1280,
    graded_solve_rate: 1,
    reverse_kl_per_token: 12.345,
    entropy_per_token: 12.345,
    entropy_ratio: 12.34,
    mean_generation_tokens: 123_456,
    generation_tokens_ratio: 12.34,
    usd: 1234.5,
    forecast_usd: 123_456.7,
    unpriced_meters: ['teacher_prefill'],
    wall_ms: 39_540_000,
  });
  for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});
