import { readdir, readFile } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { z } from 'zod';
import { BadHarborInput } from './errors.ts';
import { openTaskFolder, type TaskFolder } from './task-folder.ts';

const PROCESS_ENVIRONMENT = 'stillroom_harbor.environment:ProcessEnvironment';

const Env = z.record(z.string(), z.string());
const Kwargs = z.record(z.string(), z.unknown());
const Multiplier = z.number().positive();
const Policy = z.enum(['auto', 'limit', 'request', 'guarantee', 'ignore']);

/** A volume in Docker Compose's words; what more it may say is between harbor and the engine. */
const Mount = z.looseObject({ type: z.enum(['bind', 'volume', 'image']), source: z.string(), target: z.string().startsWith('/') });

/** harbor's own keys, all of them: what an environment makes of each is its own affair. */
const Environment = z
  .strictObject({
    type: z.string().min(1).optional(),
    import_path: z
      .string()
      .regex(/^[\w.]+:\w+$/, 'must look like module.path:Class')
      .optional(),
    force_build: z.boolean().optional(),
    delete: z.boolean().optional(),
    stream: z.boolean().optional(),
    override_cpus: z.number().positive().optional(),
    override_memory_mb: z.int().positive().optional(),
    override_storage_mb: z.int().positive().optional(),
    override_gpus: z.int().nonnegative().optional(),
    override_tpu: z.strictObject({ type: z.string().min(1), topology: z.string().min(1) }).optional(),
    suppress_override_warnings: z.boolean().optional(),
    cpu_enforcement_policy: Policy.optional(),
    memory_enforcement_policy: Policy.optional(),
    mounts: z.array(Mount).optional(),
    extra_docker_compose: z.array(z.string().min(1)).optional(),
    extra_allowed_hosts: z.array(z.string()).optional(),
    env: Env.optional(),
    kwargs: Kwargs.optional(),
  })
  .refine((it) => (it.type === undefined) !== (it.import_path === undefined), 'needs either "type" or "import_path"');

const Verifier = z.strictObject({
  import_path: z
    .string()
    .regex(/^[\w.]+:\w+$/, 'must look like module.path:Class')
    .optional(),
  override_timeout_sec: z.number().positive().optional(),
  max_timeout_sec: z.number().positive().optional(),
  include_logs: z.array(z.string()).optional(),
  exclude_logs: z.array(z.string()).optional(),
  disable: z.literal(false, 'must be false: a trial that is not graded has no reward to learn from').optional(),
  extra_allowed_hosts: z.array(z.string()).optional(),
  env: Env.optional(),
  kwargs: Kwargs.optional(),
});

const JobTemplateJson = z.strictObject({
  quiet: z.boolean().optional(),
  retry: z
    .strictObject({
      max_retries: z.literal(0, "must be 0: harbor's retries delete the failed attempt; set harbor.retries of the run instead"),
    })
    .optional(),
  environment: Environment,
  verifier: Verifier.optional(),
  tasks: z.array(z.strictObject({ path: z.string().min(1) })).optional(),
  datasets: z.array(z.strictObject({ path: z.string().min(1) })).optional(),
  timeout_multiplier: Multiplier.optional(),
  agent_timeout_multiplier: Multiplier.optional(),
  verifier_timeout_multiplier: Multiplier.optional(),
  agent_setup_timeout_multiplier: Multiplier.optional(),
  environment_build_timeout_multiplier: Multiplier.optional(),
  artifacts: z.array(z.string()).optional(),
  extra_instructions: z.array(z.string()).optional(),
});

/** Keys that a template may hold, by part; a test compares them with harbor's own. */
export const TEMPLATE_KEYS = { environment: Object.keys(Environment.shape), verifier: Object.keys(Verifier.shape) } as const;

/** A harbor job file without its agents: where tasks are, and what a trial of any of them runs in. */
export type JobTemplate = z.infer<typeof JobTemplateJson>;

/**
 * Parses a job template (JSON text); `file` is for messages. harbor itself drops unknown keys without a word, so they are refused
 * here. Throws `BadHarborInput` naming file and field.
 */
export function parseJobTemplate(text: string, file: string): JobTemplate {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw new BadHarborInput(`${file}: not JSON: ${(error as Error).message}`);
  }
  if (typeof json === 'object' && json !== null && 'agents' in json) {
    throw new BadHarborInput(`${file}: agents: must not be set; Stillroom chooses the agent and its model for every trial`);
  }
  const parsed = JobTemplateJson.safeParse(json);
  if (!parsed.success)
    throw new BadHarborInput(parsed.error.issues.map((issue) => `${file}: ${fieldOf(issue.path)}: ${issue.message}`).join('\n'));
  if ((parsed.data.tasks ?? []).length + (parsed.data.datasets ?? []).length === 0) {
    throw new BadHarborInput(`${file}: tasks, datasets: name at least one path where tasks are`);
  }
  return parsed.data;
}

/** Reads and parses a job template file. Throws `BadHarborInput` if it is missing or wrong. */
export async function readJobTemplate(file: string): Promise<JobTemplate> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new BadHarborInput(`${file}: cannot be read: ${error.message}`);
  });
  return parseJobTemplate(text, file);
}

/**
 * Finds the folders of tasks by id (the folder's name); relative paths of the template count from `baseDir`.
 * Throws `BadHarborInput` for an id that is nowhere, or for a folder that lacks a needed file.
 */
export async function resolveTasks(template: JobTemplate, baseDir: string, ids: readonly string[]): Promise<TaskFolder[]> {
  const known = await taskDirs(template, baseDir);
  return Promise.all(
    ids.map((id) => {
      const dir = known.get(id);
      if (dir !== undefined) return openTaskFolder(dir);
      const searched = [...(template.tasks ?? []), ...(template.datasets ?? [])].map((place) => resolve(baseDir, place.path));
      throw new BadHarborInput(`task "${id}" is not in the job template's tasks or datasets (${searched.join(', ')})`);
    }),
  );
}

/** All task ids of a template with their folders; a single task given by path wins over one of the same name in a dataset. */
async function taskDirs(template: JobTemplate, baseDir: string): Promise<Map<string, string>> {
  const dirs = new Map<string, string>();
  for (const { path } of template.datasets ?? []) {
    const root = resolve(baseDir, path);
    const entries = await readdir(root, { withFileTypes: true }).catch(() => {
      throw new BadHarborInput(`datasets: folder ${root} does not exist`);
    });
    for (const entry of entries) if (entry.isDirectory()) dirs.set(entry.name, join(root, entry.name));
  }
  for (const { path } of template.tasks ?? []) {
    const dir = resolve(baseDir, path);
    dirs.set(basename(dir), dir);
  }
  return dirs;
}

/** The mode of the template's process sandbox; null if it uses another kind of environment (Docker, E2B). */
export function sandboxMode(template: JobTemplate): 'bwrap' | 'plain' | null {
  const { environment } = template;
  if (environment.import_path !== PROCESS_ENVIRONMENT) return null;
  return environment.kwargs?.mode === 'plain' ? 'plain' : 'bwrap';
}

/** Whether agents' programs run in process sandboxes that have no network. */
export function hasNoNetwork(template: JobTemplate): boolean {
  return sandboxMode(template) === 'bwrap' && template.environment.kwargs?.network !== true;
}

function fieldOf(path: readonly PropertyKey[]): string {
  return path.length === 0 ? '(whole file)' : path.map(String).join('.');
}
