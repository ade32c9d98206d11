import { execa } from 'execa';
import { z } from 'zod';
import { BadHarborInput, TaskUnreachable } from '../errors.ts';
import { type FoundTask, gitTask } from './found-task.ts';

const LIMIT_MS = 10 * 60_000;

const Answer = z.union([
  z.object({ error: z.object({ kind: z.enum(['network', 'refused']), message: z.string() }) }),
  z.object({ package: z.object({ path: z.string(), digest: z.string() }) }),
  z.object({
    tasks: z.array(
      z.union([
        z.object({ name: z.string(), ref: z.string() }),
        z.object({ path: z.string(), git_url: z.string(), git_commit_id: z.string().nullable() }),
      ]),
    ),
  }),
]);
type Answer = z.infer<typeof Answer>;

/** harbor's own registry on the internet, asked through harbor's own client. @throws BadHarborInput, TaskUnreachable */
export type OnlineRegistry = {
  /** All tasks of a dataset. */
  readonly dataset: (
    named: { readonly name: string; readonly version?: string; readonly ref?: string },
    signal?: AbortSignal,
  ) => Promise<FoundTask[]>;
  /** Downloads a package below `into`; `ref` as the registry knows it. Its own digest pins it. */
  readonly fetch: (id: string, ref: string, into: string, signal?: AbortSignal) => Promise<{ readonly path: string; readonly ref: string }>;
};

/** `python` is found when it is needed: most runs never ask the registry. */
export function onlineRegistry(python: () => Promise<string>, pluginDir: string): OnlineRegistry {
  const ask = (request: object, signal: AbortSignal | undefined) => asked(python, pluginDir, request, signal);
  return {
    async dataset(named, signal) {
      const answer = await ask({ dataset: named }, signal);
      if (!('tasks' in answer)) throw new BadHarborInput(`harbor's registry gave no list of tasks for ${named.name}`);
      return answer.tasks.map((task) =>
        'name' in task ? { kind: 'package', id: task.name, ref: task.ref } : gitTask(task.git_url, task.git_commit_id, task.path),
      );
    },
    async fetch(id, ref, into, signal) {
      const answer = await ask({ package: { name: id, ref }, into }, signal);
      if (!('package' in answer)) throw new BadHarborInput(`harbor's registry gave no package ${id}@${ref}`);
      return { path: answer.package.path, ref: answer.package.digest };
    },
  };
}

async function asked(python: () => Promise<string>, pluginDir: string, request: object, signal: AbortSignal | undefined): Promise<Answer> {
  const { stdout, stderr, exitCode, timedOut } = await execa(await python(), ['-m', 'stillroom_harbor.online_registry'], {
    env: { PYTHONPATH: pluginDir, HARBOR_TELEMETRY: '0', LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    input: JSON.stringify(request),
    reject: false,
    timeout: LIMIT_MS,
    ...(signal ? { cancelSignal: signal } : {}),
  });
  signal?.throwIfAborted();
  if (timedOut) throw new TaskUnreachable(`harbor's registry did not answer within ${LIMIT_MS / 60_000} minutes`);
  const answer = Answer.safeParse(json(stdout.split('\n').at(-1) ?? ''));
  if (!answer.success) throw new BadHarborInput(`harbor's registry client ended with exit code ${exitCode}: ${stderr.split('\n').at(-1)}`);
  if (!('error' in answer.data)) return answer.data;
  const { kind, message } = answer.data.error;
  if (kind === 'refused') throw new BadHarborInput(`harbor's registry: ${message}`);
  const advice = 'Tasks named by "name" alone are looked up on the internet; without it give "registry_path", "git_url" or "path"';
  throw new TaskUnreachable(`harbor's registry cannot be reached: ${message}. ${advice}`);
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
