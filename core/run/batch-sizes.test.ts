import { describe, expect, it } from 'vitest';
import { parseRunConfig } from '../config/index.ts';
import { oversizedBatches, oversizedTaskLists } from './batch-sizes.ts';

const configOf = (more: string) => {
  const parsed = parseRunConfig(`[student]\nbase_model="s"\n[teacher]\nmodel="t"\n[harbor]\njob_template="j"\n${more}`, 'run.toml');
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.config;
};
const found = (more: string, train: number, holdout: number) => oversizedBatches(configOf(more), { train, holdout });

it.each<[string, string, number, number, RegExp | null]>([
  ['the defaults', '', 5000, 600, null],
  [
    'a step',
    '[train]\ntasks_per_batch = 513\ngroup_size = 8\n',
    600,
    1,
    /^train\.tasks_per_batch × train\.group_size comes to 4104 trials/,
  ],
  ['a step that the split keeps small', '[train]\ntasks_per_batch = 513\ngroup_size = 8\n', 512, 1, null],
  ['an evaluation', '', 1, 1366, /^held-out tasks × gate\.k comes to 4098 trials in one batch; at most 4096 are handled$/],
  ['a collection', '[warmup]\nsteps = 1\nrollouts_per_task = 8\n', 513, 1, /^training tasks × warmup\.rollouts_per_task comes to 4104/],
  ['a collection that is loaded', '[warmup]\nsteps = 1\nrollouts_per_task = 8\ntrajectories_from = "a"\n', 513, 1, null],
  ['an interim evaluation', '[eval]\nevery = 1\ntasks = 300\nk = 14\n', 300, 1, /^eval\.tasks × eval\.k comes to 4200/],
])('%s', (_, more, train, holdout, problem) => {
  const problems = found(more, train, holdout);
  expect(problems).toEqual(problem === null ? [] : [expect.stringMatching(problem)]);
});

describe('lists of tasks', () => {
  /** Tasks whose entries in a list have 200 bytes. */
  const tasks = (count: number) =>
    Array.from({ length: count }, (_, index) => {
      const id = `task-${String(index).padStart(15, '0')}`;
      return { id, path: 'p'.repeat(200 - 31 - 71 - id.length), digest: `sha256:${'0'.repeat(64)}` };
    });
  const problems = (more: string, train: number, holdout: number) =>
    oversizedTaskLists(configOf(more), { train: tasks(train), holdout: tasks(holdout) });

  it('as large as a batch may be pass', () => {
    expect(JSON.stringify(tasks(1)[0])).toHaveLength(200);
    expect(problems('[train]\ntasks_per_batch = 4096\ngroup_size = 1\n', 4096, 1365)).toEqual([]);
    expect(problems('[train]\ntasks_per_batch = 8\n[eval]\nevery = 1\n', 20_000, 1)).toEqual([]);
  });

  it.each<[string, string, number, number, RegExp]>([
    [
      'a step',
      '[train]\ntasks_per_batch = 5000\ngroup_size = 1\n',
      5000,
      1,
      /^train\.tasks_per_batch: the tasks of one step come to 1005000 bytes; at most 917504 are handled/,
    ],
    [
      'held-out counts',
      '[gate]\nk = 1\n',
      1,
      2500,
      /^the ids and counts of the held-out tasks come to \d+ bytes; at most 131072 are handled/,
    ],
    ['an interim evaluation', '[eval]\nevery = 1\ntasks = 5000\n', 5000, 1, /^eval\.tasks: the tasks of an interim evaluation come to/],
    ['a warm-up', '[warmup]\nsteps = 1\n', 5000, 1, /^the training tasks, which a warm-up plays, come to/],
  ])('that are too long are refused: %s', (_, more, train, holdout, problem) => {
    expect(problems(more, train, holdout)).toEqual([expect.stringMatching(problem)]);
  });
});
