import { expect, test } from 'vitest';
import { parseRunConfig } from '../../core/config/index.ts';
import { unboundedSpend } from './spend.ts';

const BASE = '[student]\nbase_model = "s"\n[teacher]\nmodel = "t"\n[harbor]\njob_template = "j"\n';
const FULL_PRICES = ['student_prefill', 'student_sample', 'student_train', 'teacher_prefill', 'teacher_sample'];
const pricing = (meters: readonly string[]) => `[pricing]\n${meters.map((meter) => `${meter} = 1.0\n`).join('')}`;

test.each<[name: string, toml: string, bound: RegExp | null]>([
  ['no prices and no cap', '', /no price for student_prefill, .* and no budget\.max_usd\. Set \[budget\] max_usd/],
  ['one price missing', pricing(FULL_PRICES.slice(1)), /no price for student_prefill and no budget/],
  ['all prices, the cached ones implied', pricing(FULL_PRICES), null],
  ['a cap without prices', '[budget]\nmax_usd = 5\n', null],
])('%s', (_, toml, bound) => {
  const parsed = parseRunConfig(BASE + toml, 'run.toml');
  if (!parsed.ok) throw new Error('the config of this test is wrong');
  const problem = unboundedSpend(parsed.config, { nTrain: 4, nHoldout: 2 });
  if (bound === null) expect(problem).toBeNull();
  else expect(problem).toMatch(bound);
});
