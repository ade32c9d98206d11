import { z } from 'zod';

/** Why a text holds no split: it is no JSON, not a list of strings, or a list that cannot be one. */
export type TaskIdsProblem = { readonly kind: 'unreadable' | 'shape' | 'invalid'; readonly message: string };
export type TaskIdsRead =
  | { readonly ids: readonly string[]; readonly problem: null }
  | { readonly ids: readonly []; readonly problem: TaskIdsProblem };

const Strings = z.array(z.string());

/** Task ids out of a JSON array of strings. Order is kept; an id is taken as it stands, blanks and case included. */
export function parseTaskIds(text: string): TaskIdsRead {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return wrong('unreadable', `not JSON: ${(error as Error).message}`);
  }
  const parsed = Strings.safeParse(json);
  if (!parsed.success) {
    const issues = parsed.error.issues.map(
      (issue) => `${issue.path.length === 0 ? '' : `entry ${issue.path.join('.')}: `}${issue.message}`,
    );
    return wrong('shape', `must be a JSON array of task ids (strings): ${some(issues, '; ')}`);
  }
  const problem = splitProblem(parsed.data);
  return problem === null ? { ids: parsed.data, problem: null } : wrong('invalid', problem);
}

/** Why these ids are no split; null when they are one. */
function splitProblem(ids: readonly string[]): string | null {
  if (ids.length === 0) return 'names no task';
  const unusable = ids.findIndex((id) => id === '' || id.includes('\0') || !id.isWellFormed());
  if (unusable >= 0) return `entry ${unusable}: a task id must be text of at least one character, without NUL and broken characters`;
  const seen = new Set<string>();
  const repeated = new Set(ids.filter((id) => seen.size === seen.add(id).size));
  return repeated.size === 0 ? null : `names ${some([...repeated])} more than once; a split holds a task once`;
}

const wrong = (kind: TaskIdsProblem['kind'], message: string): TaskIdsRead => ({ ids: [], problem: { kind, message } });

const SHOWN = 3;

/** `a, b, c and 4 more` */
export function some(items: readonly string[], separator = ', '): string {
  const shown = items.slice(0, SHOWN).join(separator);
  return items.length > SHOWN ? `${shown} and ${items.length - SHOWN} more` : shown;
}
