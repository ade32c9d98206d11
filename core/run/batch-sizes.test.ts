import { expect, it } from 'vitest';
import { parseRunConfig } from '../config/index.ts';
import { oversizedBatches } from './batch-sizes.ts';

const found = (more: string, train: number, holdout: number) => {
  const parsed = parseRunConfig(`[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n${more}`, 'run.toml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return oversizedBatches(parsed.config, { train, holdout });
};

it.each<[string, string, number, number, RegExp | null]>([
  ['the defaults', '', 5000, 600, null],
  [
    'a step',
    '[train]\ntasks_per_batch = 501\ngroup_size = 4\n',
    600,
    1,
    /^train\.tasks_per_batch × train\.group_size comes to 2004 trials/,
  ],
  ['a step that the split keeps small', '[train]\ntasks_per_batch = 501\ngroup_size = 4\n', 500, 1, null],
  ['an evaluation', '', 1, 667, /^held-out tasks × gate\.k comes to 2001/],
  ['a collection', '[warmup]\nsteps = 1\nrollouts_per_task = 4\n', 501, 1, /^training tasks × warmup\.rollouts_per_task comes to 2004/],
  ['a collection that is loaded', '[warmup]\nsteps = 1\nrollouts_per_task = 4\ntrajectories_from = "a"\n', 501, 1, null],
  ['an interim evaluation', '[eval]\nevery = 1\ntasks = 300\nk = 7\n', 300, 1, /^eval\.tasks × eval\.k comes to 2100/],
])('%s', (_, more, train, holdout, problem) => {
  const problems = found(more, train, holdout);
  expect(problems).toEqual(problem === null ? [] : [expect.stringMatching(problem)]);
});
