import { z } from 'zod';

const TaskIds = z.array(z.string().min(1, 'a task id must not be empty')).min(1, 'names no task');

export type TaskIdsRead = { readonly ids: readonly string[]; readonly problems: readonly string[] };

/** Task ids out of a JSON array of strings; `file` starts every message. Duplicates are problems, the first ones are named. */
export function parseTaskIds(text: string, file: string): TaskIdsRead {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { ids: [], problems: [`${file}: not JSON: ${(error as Error).message}`] };
  }
  const parsed = TaskIds.safeParse(json);
  if (!parsed.success) {
    const wrong = parsed.error.issues.map((issue) => `${issue.path.length === 0 ? '' : `entry ${issue.path.join('.')}: `}${issue.message}`);
    return { ids: [], problems: [`${file}: must be a JSON array of task ids (strings): ${some(wrong, '; ')}`] };
  }
  const repeated = [...new Set(parsed.data.filter((id, index) => parsed.data.indexOf(id) !== index))];
  const problems = repeated.length === 0 ? [] : [`${file}: names ${some(repeated)} more than once; a split holds a task once`];
  return { ids: parsed.data, problems };
}

/** What is wrong between the two splits: a run must be judged on tasks that it never trained on. */
export function overlapProblems(train: readonly string[], holdout: readonly string[]): string[] {
  const trained = new Set(train);
  const both = [...new Set(holdout.filter((id) => trained.has(id)))];
  return both.length === 0
    ? []
    : [`--tasks and --holdout overlap: ${some(both)} ${both.length === 1 ? 'is' : 'are'} in both; held-out tasks must not be trained on`];
}

const SHOWN = 3;

/** `a, b, c and 4 more` */
export function some(items: readonly string[], separator = ', '): string {
  const shown = items.slice(0, SHOWN).join(separator);
  return items.length > SHOWN ? `${shown} and ${items.length - SHOWN} more` : shown;
}
