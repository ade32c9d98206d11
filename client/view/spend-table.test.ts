import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { METERS } from '../../core/measures/meters.ts';
import type { RunSpend } from '../../workflows/messages.ts';
import { runSpend } from '../testing/runs.ts';
import { usd } from './format.ts';
import { spendTable } from './spend-table.ts';

const shown = (spend: RunSpend) => spendTable(spend, pc.createColors(false));
/** As one line: where text is broken does not matter to what it says. */
const told = (spend: RunSpend) => shown(spend).replaceAll('\n', ' ');

const PRICED = { student_sample: [2, 0.3] } as const;
const BLIND = { ...PRICED, teacher_sample: [1, null] } as const;
const ALL_UNKNOWN = Object.fromEntries(METERS.map((meter) => [meter, [123_456, null] as const]));

it('shows tokens, price and cost of each meter', () => {
  expect(shown(runSpend(PRICED))).toMatch(
    /^spend by meter +tokens +USD per million +USD\nstudent_sample +2,000,000 +\$0\.3000 +\$0\.6000\n/,
  );
});

describe('what has no price', () => {
  it('is unknown, and is not in the sum', () => {
    expect(shown(runSpend(BLIND))).toMatch(/^teacher_sample +1,000,000 +unknown +unknown$/m);
    expect(told(runSpend(BLIND))).toContain('Spent: $0.6000 and the unknown cost of one meter.');
  });

  it('is never zero where it is all there is', () => {
    const text = shown(runSpend({ teacher_sample: [1, null] }, { forecastUsd: 0, maxUsd: 2 }));
    expect(text).toContain('Spent: unknown, no price is set.');
    expect(text).toContain('Forecast: unknown.');
    expect(text).not.toMatch(/\$0/);
  });

  it('a price of zero is one', () => {
    expect(shown(runSpend({ teacher_sample: [1, 0] }))).toMatch(/^teacher_sample .* \$0\.0000 +\$0\.0000$/m);
    expect(told(runSpend({ teacher_sample: [1, 0] }))).toContain('Spent: $0.0000.');
  });
});

it('a cost too small to show is not shown as nothing', () => {
  expect(shown(runSpend({ student_sample: [0.00001, 0.3] }))).toMatch(/^student_sample +10 +\$0\.3000 +<\$0\.0001$/m);
  expect([0, 0.00004, 0.00005].map(usd)).toEqual(['$0.0000', '<$0.0001', '$0.0001']);
});

it.each<[name: string, spend: RunSpend, text: string]>([
  ['nothing spent', runSpend({}), 'Spent: nothing yet. No cap is set.'],
  ['no cap', runSpend(PRICED), 'Spent: $0.6000. No cap is set.'],
  ['no cap and no price', runSpend(BLIND), 'No cap is set, and teacher_sample cannot be counted: it has no price.'],
  ['a cap', runSpend(PRICED, { maxUsd: 2 }), 'Cap: $2.00.'],
  ['what the cap cannot see', runSpend(BLIND, { maxUsd: 2 }), 'Cap: $2.00. It cannot see teacher_sample: it has no price.'],
  ['a forecast', runSpend(PRICED, { maxUsd: 2, forecastUsd: 1.5 }), 'Forecast: $1.50 at the end.'],
  ['a forecast above the cap', runSpend(PRICED, { maxUsd: 2, forecastUsd: 2.5 }), 'Forecast: $2.50 at the end, above the cap.'],
  ['a forecast of a part', runSpend(BLIND, { forecastUsd: 1.5 }), 'Forecast: $1.50 at the end, without what has no price.'],
])('says of money: %s', (_, spend, text) => expect(told(spend)).toContain(text));

it('stays within 80 columns', () => {
  for (const spend of [
    runSpend(ALL_UNKNOWN, { maxUsd: 1e6, forecastUsd: 1e7 }),
    runSpend({ teacher_cached_prefill: [123_456, 12_345.67] }),
  ])
    for (const line of shown(spend).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
});
