import { parseTaskIds, some } from '../../core/run/task-ids.ts';
import { readInputFile } from './files.ts';
import type { Problems } from './problems.ts';

/** The ids of a split file; null when it cannot be used, which `problems` then tells. */
export async function readTaskIds(path: string, option: string, problems: Problems): Promise<readonly string[] | null> {
  const file = await readInputFile(path, option);
  if ('problem' in file) {
    problems.add('task_ids_unreadable', file.problem);
    return null;
  }
  const { ids, problem } = parseTaskIds(file.text);
  if (problem === null) return ids;
  problems.add(`task_ids_${problem.kind}`, `${option} ${path}: ${problem.message}`);
  return null;
}

/** What is wrong between the two splits: a run must be judged on tasks that it never trained on. */
export function overlapProblems(train: readonly string[], holdout: readonly string[]): string[] {
  const trained = new Set(train);
  const both = [...new Set(holdout.filter((id) => trained.has(id)))];
  return both.length === 0
    ? []
    : [`--tasks and --holdout overlap: ${some(both)} ${both.length === 1 ? 'is' : 'are'} in both; held-out tasks must not be trained on`];
}
