import { z } from 'zod';
import { gitUrlProblem, refProblem, repositoryPathProblem } from './tasks/git-url.ts';

/** A key of harbor's that Stillroom decides: its message says what to do instead. */
export const refused = (message: string) => z.never(message).optional();

const OWN_CACHE = 'remove it: Stillroom keeps fetched tasks in a cache of its own, by their content (docs/tasks.md)';
const LEGACY_REGISTRY = 'write "registry_path" or "registry_url" instead';
const ONLINE =
  'harbor\'s registry on the internet is not asked: name the tasks by "path" (with "git_url" if they are in a repository), or their dataset by "registry_path" or "registry_url"';

type Entry = Readonly<Record<string, unknown>>;
/** A rule over several keys, looked at whatever else is wrong with the entry. */
type Rule = readonly [holds: (entry: Entry) => boolean, message: string, key?: string];

const has = (entry: Entry, ...keys: string[]) => keys.every((key) => entry[key] !== undefined);
const isText = (value: unknown): value is string => typeof value === 'string';

function withRules<T extends z.ZodType>(schema: T, rules: readonly Rule[]): T {
  return rules.reduce(
    (checked, [holds, message, key]) =>
      checked.refine((entry) => holds(entry as Entry), {
        message,
        ...(key === undefined ? {} : { path: [key] }),
        when: ({ value }) => typeof value === 'object' && value !== null && !Array.isArray(value),
      }),
    schema,
  );
}

const Text = z.string().min(1);
const judged = (problemOf: (text: string) => string | null) =>
  Text.superRefine((text, context) => {
    const message = problemOf(text);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });
const GitUrl = judged(gitUrlProblem);
const GitRef = judged(refProblem);
/** One task of a job file: a folder here, or a folder of a git repository. */
export const JobTask = withRules(
  z.strictObject({
    path: Text,
    git_url: GitUrl.optional(),
    git_commit_id: GitRef.optional(),
    source: z.string().optional(),
    name: refused(ONLINE),
    ref: refused(ONLINE),
    overwrite: refused(OWN_CACHE),
    download_dir: refused(OWN_CACHE),
  }),
  [
    [(it) => !has(it, 'git_commit_id') || has(it, 'git_url'), 'needs "git_url" beside it', 'git_commit_id'],
    [
      (it) => !(has(it, 'git_url') && isText(it.path)) || repositoryPathProblem(it.path as string) === null,
      'must name a folder within the repository',
      'path',
    ],
  ],
);

/** A set of tasks of a job file: a folder here, a registry's or a repository's dataset. Filters work as harbor's do. */
export const JobDataset = withRules(
  z.strictObject({
    path: Text.optional(),
    name: Text.optional(),
    version: Text.optional(),
    ref: refused(`write it behind the repository, "repo": "org/repo@ref"; ${ONLINE}`),
    repo: Text.optional(),
    registry_path: Text.optional(),
    registry_url: z
      .url({ protocol: /^https?$/, error: 'must be an http(s):// address' })
      .refine((url) => !/^https?:\/\/[^/]*@/.test(url), 'must not hold a user name or a password')
      .optional(),
    task_names: z.array(z.string()).optional(),
    exclude_task_names: z.array(z.string()).optional(),
    n_tasks: z.int().positive().optional(),
    registry: refused(LEGACY_REGISTRY),
    overwrite: refused(OWN_CACHE),
    download_dir: refused(OWN_CACHE),
  }),
  [
    [
      (it) => has(it, 'path') || has(it, 'name') || has(it, 'repo'),
      'needs "path" (a folder), "name" (in a registry) or "repo" (a git repository)',
    ],
    [(it) => !has(it, 'path', 'name'), 'has both "path" and "name": keep one'],
    [(it) => !has(it, 'version') || has(it, 'name'), 'needs "name" beside it', 'version'],
    [(it) => !has(it, 'registry_url', 'repo'), 'cannot stand beside "repo"', 'registry_url'],
    [(it) => !has(it, 'registry_url', 'registry_path'), 'has both "registry_url" and "registry_path": keep one'],
    [(it) => !has(it, 'registry_path') || has(it, 'name'), 'needs "name" beside it: which dataset of the registry', 'registry_path'],
    [(it) => !has(it, 'registry_url') || has(it, 'name'), 'needs "name" beside it: which dataset of the registry', 'registry_url'],
    [(it) => !has(it, 'name') || has(it, 'repo') || has(it, 'registry_path') || has(it, 'registry_url'), ONLINE, 'name'],
  ],
);

export type JobTask = z.infer<typeof JobTask>;
export type JobDataset = z.infer<typeof JobDataset>;
