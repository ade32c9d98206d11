import { expect, it } from 'vitest';
import { baselineReportOf } from '../run/testing/facts.ts';
import type { BaselineReport } from './baseline-report.ts';
import { BaselineError, type BaselineWanted, chooseBaseline } from './baselines.ts';

const report = baselineReportOf({ provider_model: 'T', base_model: 'T', task_ids: ['h1', 'h2'] });
const wanted: Omit<BaselineWanted, 'which'> = { attempts: 3, holdout: ['h1', 'h2'], providerModel: 'T', baseModel: 'T', recorded: null };
const outcome = (over: BaselineWanted) => {
  try {
    return chooseBaseline(over).source;
  } catch (error) {
    if (error instanceof BaselineError) return error.code;
    throw error;
  }
};
/** What becomes of a report that is imported, and of the same one recorded by this run, for either baseline. */
const fates = (over: Partial<BaselineReport>, holdout = wanted.holdout) => {
  const given = { ...report, ...over };
  return (['teacher', 'student'] as const).flatMap((which) => [
    outcome({ ...wanted, holdout, which, importText: JSON.stringify(given) }),
    outcome({ ...wanted, holdout, which, recorded: given }),
  ]);
};
const all = (imported: string, recorded: string) => [imported, recorded, imported, recorded];

it('a baseline that executed nothing is never accepted, whatever rate it states', () => {
  const nothing = { executed_trials: 0, infra_failed_trials: 6 };
  for (const rate of [{ solve_rate: 0 }, { solve_rate: 1 }, { trials: 0 }])
    expect(fates({ ...nothing, ...rate })).toEqual(all('import_null_measurement', 'reuse_null_measurement'));
  expect(fates({ executed_trials: 1, infra_failed_trials: 5 })).toEqual(all('imported', 'recorded'));
});

it('tasks are compared as a set: their order does not matter', () => {
  expect(fates({ task_ids: ['h2', 'h1'] })).toEqual(all('imported', 'recorded'));
});

it.each([
  ['one is missing', ['h1']],
  ['one is too many', ['h1', 'h2', 'h3']],
  ['one is another', ['h1', 'h3']],
  ['one stands for two', ['h1', 'h1']],
  ['one counts twice', ['h1', 'h2', 'h2']],
  ['there are none', []],
])('tasks are not the same when %s', (_, task_ids) => {
  expect(fates({ task_ids })).toEqual(all('import_task_set', 'reuse_task_set'));
});

it('a holdout that lists a task twice is matched by no report', () => {
  expect(fates({}, ['h1', 'h2', 'h2'])).toEqual(all('import_task_set', 'reuse_task_set'));
});

it('more attempts than asked for are fine, fewer are not', () => {
  expect(fates({ attempts: 5 })).toEqual(all('imported', 'recorded'));
  expect(fates({ attempts: 2 })).toEqual(all('import_too_few_attempts', 'reuse_attempts_changed'));
});
