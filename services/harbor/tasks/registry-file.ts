import { z } from 'zod';
import { BadHarborInput } from '../errors.ts';
import { didYouMean } from '../nearest.ts';
import { gitUrlProblem, refProblem } from './git-url.ts';

/** One task of a registry's dataset: a folder of a repository, or without `git_url` a folder here. */
const RegistryTask = z.object({
  name: z.string(),
  git_url: z.string().nullish(),
  git_commit_id: z.string().nullish(),
  path: z.string().min(1),
});
const Registry = z.array(z.object({ name: z.string(), version: z.string(), tasks: z.array(RegistryTask) }));
export type RegistryTask = z.infer<typeof RegistryTask>;

/**
 * The tasks of one dataset of a registry (harbor's `registry.json`); without a version the one that harbor takes: `head`, else the newest.
 * `place` is for messages. Throws `BadHarborInput` naming what is wrong or missing.
 */
export function datasetOf(text: string, place: string, name: string, version: string | undefined): readonly RegistryTask[] {
  const datasets = parsed(text, place);
  const found = datasets.filter((dataset) => dataset.name === name);
  if (found.length === 0)
    throw new BadHarborInput(
      `${place} has no dataset ${name}${didYouMean(
        name,
        datasets.map((it) => it.name),
      )}`,
    );
  const versions = found.map((dataset) => dataset.version);
  const wanted = version ?? newest(versions);
  const dataset = found.findLast((it) => it.version === wanted);
  if (!dataset) throw new BadHarborInput(`${place} has no version ${wanted} of dataset ${name}: it has ${versions.join(', ')}`);
  const problems = dataset.tasks.flatMap((task) => {
    const problem = (task.git_url ? gitUrlProblem(task.git_url) : null) ?? (task.git_commit_id ? refProblem(task.git_commit_id) : null);
    return problem === null ? [] : [`${place}: ${name}: task ${task.name}: git_url or git_commit_id ${problem}`];
  });
  if (problems.length > 0) throw new BadHarborInput(problems.slice(0, 5).join('\n'));
  return dataset.tasks;
}

function parsed(text: string, place: string): z.infer<typeof Registry> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new BadHarborInput(`${place} is not JSON: ${(error as Error).message}`);
  }
  const registry = Registry.safeParse(json);
  if (registry.success) return registry.data;
  const issues = registry.error.issues.slice(0, 5).map(({ path, message }) => `${path.join('.') || '(whole file)'}: ${message}`);
  throw new BadHarborInput(`${place} is no registry (a list of datasets with name, version, tasks): ${issues.join('; ')}`);
}

/** `head`, else the highest of those that are version numbers, else the last by name. */
export function newest(versions: readonly string[]): string {
  if (versions.includes('head')) return 'head';
  const numbered = versions.flatMap((version) => {
    const key = versionKey(version);
    return key === null ? [] : [{ version, key }];
  });
  const [best] = numbered.sort((a, b) => compare(b.key, a.key));
  return best?.version ?? ([...versions].sort().at(-1) as string);
}

/** Python's order of versions (PEP 440), as far as registries use it: 1.0.dev1 < 1.0a1 < 1.0b1 < 1.0rc1 < 1.0 < 1.0.post1. */
function versionKey(text: string): readonly number[] | null {
  const match =
    /^v?(\d+(?:\.\d+)*)(?:[-_.]?(a|b|rc|alpha|beta|c|pre|preview)[-_.]?(\d*))?(?:[-_.]?post[-_.]?(\d*))?(?:[-_.]?dev[-_.]?(\d*))?$/i.exec(
      text,
    );
  if (match === null) return null;
  const [, release = '', stage, stageNumber, post, dev] = match;
  const parts = release.split('.').map(Number);
  const padded = Array.from({ length: 8 }, (_, index) => parts[index] ?? 0);
  const stages: Readonly<Record<string, number>> = { a: 1, alpha: 1, b: 2, beta: 2, rc: 3, c: 3, pre: 3, preview: 3 };
  const rank = stage === undefined ? (dev !== undefined && post === undefined ? 0 : 4) : (stages[stage.toLowerCase()] as number);
  return [
    ...padded,
    rank,
    Number(stageNumber ?? 0),
    post === undefined ? -1 : Number(post),
    dev === undefined ? Number.POSITIVE_INFINITY : Number(dev),
  ];
}

function compare(a: readonly number[], b: readonly number[]): number {
  const place = a.findIndex((part, index) => part !== b[index]);
  return place < 0 ? 0 : (a[place] as number) < (b[place] as number) ? -1 : 1;
}
