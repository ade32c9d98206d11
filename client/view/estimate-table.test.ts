import pc from 'picocolors';
import { describe, expect, it } from 'vitest';
import { parseRunConfig } from '../../core/config/index.ts';
import { estimateCost } from '../../core/estimate/index.ts';
import { estimateTable } from './estimate-table.ts';

const PLAIN = pc.createColors(false);
const ALL = 'student_prefill = 1\nstudent_sample = 2\nstudent_train = 3\nteacher_prefill = 4\nteacher_sample = 5\n';

function estimateWith(pricing: string) {
  const toml = `[student]\nbase_model = "s"\n[teacher]\nmodel = "t"\n[harbor]\njob_template = "j"\n[pricing]\n${pricing}`;
  const parsed = parseRunConfig(toml, 'run.toml');
  if (!parsed.ok) throw new Error('the config of this test is wrong');
  return estimateCost(parsed.config, { nTrain: 100_000, nHoldout: 100_000 });
}
const shown = (pricing: string, maxUsd: number | null) => estimateTable(estimateWith(pricing), maxUsd, PLAIN);
/** As one line: where text is broken does not matter to what it says. */
const told = (pricing: string, maxUsd: number | null) => shown(pricing, maxUsd).replaceAll('\n', ' ');

describe('the estimate table', () => {
  it.each([null, 0.01, 1e9])('stays within 80 columns, whatever has a price, with a cap of %d', (maxUsd) => {
    for (const pricing of ['', 'student_prefill = 12345.678\n', ALL])
      for (const line of shown(pricing, maxUsd).split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('never shows an unknown price as zero', () => {
    for (const maxUsd of [null, 5]) expect(shown('', maxUsd)).not.toMatch(/\$0/);
    expect(shown('', null).match(/unknown +unknown/g)).toHaveLength(7);
    expect(told('', null)).toContain('Estimate: unknown, no price is set.');
    expect(told(ALL.replace('student_train = 3\n', ''), null)).toMatch(/Estimate: \$[\d.]+ and the unknown cost of one meter\./);
  });

  it('shows a price of zero as one', () =>
    expect(shown(`${ALL}teacher_cached_prefill = 0\n`, null)).toMatch(/teacher_cached_prefill .* \$0\.0000 +\$0\.0000/));

  it('counts the episodes of each kind', () =>
    expect(told(ALL, null)).toContain('Episodes: 1,280 training · 0 interim evaluation · 900,000 held-out · 0 warm-up.'));

  it.each<[name: string, pricing: string, maxUsd: number | null, text: string]>([
    ['nothing, when all is priced', ALL, null, 'No cap is set; every meter has a price.'],
    ['the cap', ALL, 1e9, 'Cap: $1000000000.00.'],
    ['a cap below the estimate', ALL, 5, 'Cap: $5.00. The estimate is above it: the run would wait there for a person.'],
    [
      'what would bound it',
      ALL.replace('student_prefill = 1\n', ''),
      null,
      'Nothing bounds this spend: no cap is set and prices are unknown. Set [budget] max_usd, or in [pricing] student_prefill.',
    ],
    [
      'what the cap cannot see',
      ALL.replace('student_prefill = 1\n', ''),
      1e9,
      'It cannot see student_prefill, student_cached_prefill: they have no price. To let it, set in [pricing] student_prefill.',
    ],
  ])('says of the bound: %s', (_, pricing, maxUsd, text) => expect(told(pricing, maxUsd)).toContain(text));
});
