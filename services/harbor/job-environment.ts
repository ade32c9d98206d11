import { z } from 'zod';

/** Our process sandbox. */
export const PROCESS_ENVIRONMENT = 'stillroom_harbor.environment:ProcessEnvironment';

const Policy = z.enum(['auto', 'limit', 'request', 'guarantee', 'ignore']);

/** A volume in Docker Compose's words; what more it may say is between harbor and the engine. */
const Mount = z.looseObject({ type: z.enum(['bind', 'volume', 'image']), source: z.string(), target: z.string().startsWith('/') });

/** A Python class by its path. */
export const ImportPath = z.string().regex(/^[\w.]+:\w+$/, 'must look like module.path:Class');
export const Env = z.record(z.string(), z.string());
export const Kwargs = z.record(z.string(), z.unknown());

/** The job template's `environment`: harbor's own keys, all of them; what an environment makes of each is its own affair. */
export const JobEnvironment = z.strictObject({
  type: z.string().min(1).optional(),
  import_path: ImportPath.optional(),
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
});

/** Why an `environment`, as it stands in the file, does not say what a trial runs in; null when it does. */
export function environmentKindProblem({ type, import_path }: { readonly type?: unknown; readonly import_path?: unknown }): string | null {
  if (type !== undefined && import_path !== undefined)
    return 'has both "type" and "import_path": keep the one that trials are to run in (harbor would take the class)';
  if (type === undefined && import_path === undefined)
    return `needs either "type" (docker, e2b, …) or "import_path" (${PROCESS_ENVIRONMENT} is the process sandbox)`;
  return null;
}
