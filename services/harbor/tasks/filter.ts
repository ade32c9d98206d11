import { BadHarborInput } from '../errors.ts';

/** Which of a dataset's tasks count. */
export type TaskFilter = {
  readonly task_names?: readonly string[] | undefined;
  readonly exclude_task_names?: readonly string[] | undefined;
};

/**
 * The names that a dataset's filter lets through, in their order; `n_tasks` is for the caller, who knows which of them are tasks.
 * @throws BadHarborInput when `task_names` matches nothing, as harbor does
 */
export function filterNames(names: readonly string[], { task_names, exclude_task_names = [] }: TaskFilter): string[] {
  const wanted = (task_names ?? []).map(globPattern);
  const kept = wanted.length === 0 ? names : names.filter((name) => wanted.some((pattern) => pattern.test(name)));
  if (kept.length === 0 && names.length > 0)
    throw new BadHarborInput(
      `task_names: ${JSON.stringify(task_names)} matches none of ${names.length} tasks (${[...names].sort().slice(0, 5).join(', ')})`,
    );
  const unwanted = exclude_task_names.map(globPattern);
  return kept.filter((name) => !unwanted.some((pattern) => pattern.test(name)));
}

/** Python's fnmatch, which harbor uses: `*`, `?`, `[abc]`, `[!abc]`, over the whole name; a `/` is a letter like others. */
function globPattern(glob: string): RegExp {
  const source = glob.replace(/\[(!?)(\]?[^\]]*)\]|[\s\S]/g, (part: string, not: string | undefined, set: string | undefined) => {
    if (part === '*') return '[\\s\\S]*';
    if (part === '?') return '[\\s\\S]';
    if (set === undefined) return part.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
    if (set === '') return not === '!' ? '\\[!\\]' : '\\[\\]';
    return `[${not === '!' ? '^' : ''}${set.replace(/[\\[\]^]/g, '\\$&')}]`;
  });
  return new RegExp(`^${source}$`);
}
