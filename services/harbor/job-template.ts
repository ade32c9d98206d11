import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { BadHarborInput } from './errors.ts';
import { Env, environmentKindProblem, ImportPath, JobEnvironment, Kwargs } from './job-environment.ts';
import { isObject, parseJobFile } from './job-file.ts';
import { fieldProblems } from './job-problems.ts';
import { JobDataset, JobTask, refused } from './job-tasks.ts';

const Multiplier = z.number().positive();

const Verifier = z.strictObject({
  import_path: ImportPath.optional(),
  override_timeout_sec: z.number().positive().optional(),
  max_timeout_sec: z.number().positive().optional(),
  include_logs: z.array(z.string()).optional(),
  exclude_logs: z.array(z.string()).optional(),
  disable: z.literal(false, 'must be false: a trial that is not graded has no reward to learn from').optional(),
  extra_allowed_hosts: z.array(z.string()).optional(),
  env: Env.optional(),
  kwargs: Kwargs.optional(),
});

const Artifact = z.strictObject({
  source: z.string().min(1),
  destination: z.string().optional(),
  exclude: z.array(z.string()).optional(),
  service: z.string().optional(),
});

const CHOSEN_AGENT = 'must not be set; Stillroom chooses the agent and its model for every trial: name it with `start --agent`';
const ONE_TRIAL = 'must not be set: it means nothing for the single trials that Stillroom has harbor run';

/** Keys of a harbor job that are Stillroom's to decide, and where it is told. */
const OWNED = {
  agents: refused(CHOSEN_AGENT),
  agent: refused(CHOSEN_AGENT),
  user_agent: refused('must not be set: an agent that plays the user is not supported'),
  job_name: refused('must not be set: a run is named when it is started, with `start --id`'),
  jobs_dir: refused("must not be set: a run's files go to its run directory, set with `start --run-dir`"),
  n_attempts: refused('must not be set: set train.group_size, gate.k and eval.k of the run config'),
  n_concurrent_trials: refused(
    'must not be set: set train.trial_concurrency of the run config, and workers.rolloutSlots of the app settings',
  ),
  metrics: refused('must not be set: Stillroom computes its own; the reward that counts is harbor.reward_key of the run config'),
  install_only: refused('must not be set: a trial that only installs its agent has no reward to learn from'),
  source_jobs: refused('must not be set: trials of earlier jobs are not graded anew'),
  extra_instruction_paths: refused('must not be set: write the text into extra_instructions, so that a run pins it'),
  debug: refused(ONE_TRIAL),
  skip_credential_checks: refused(ONE_TRIAL),
  plugins: refused(ONE_TRIAL),
  orchestrator: refused(`${ONE_TRIAL}; set train.trial_concurrency and harbor.retries of the run config`),
} as const;

const JobTemplateJson = z.strictObject({
  ...OWNED,
  quiet: z.boolean().optional(),
  retry: z
    .strictObject({
      max_retries: z.literal(0, "must be 0: harbor's retries delete the failed attempt; set harbor.retries of the run instead"),
    })
    .optional(),
  environment: JobEnvironment,
  verifier: Verifier.optional(),
  tasks: z.array(JobTask).optional(),
  datasets: z.array(JobDataset).optional(),
  timeout_multiplier: Multiplier.optional(),
  agent_timeout_multiplier: Multiplier.optional(),
  verifier_timeout_multiplier: Multiplier.optional(),
  agent_setup_timeout_multiplier: Multiplier.optional(),
  environment_build_timeout_multiplier: Multiplier.optional(),
  artifacts: z.array(z.union([z.string(), Artifact], 'must be a path, or an object with "source"')).optional(),
  extra_instructions: z.array(z.string()).optional(),
});

/** Keys that a template may hold, by part; a test compares them with harbor's own. */
export const TEMPLATE_KEYS = { environment: Object.keys(JobEnvironment.shape), verifier: Object.keys(Verifier.shape) } as const;

/** A harbor job file without its agents: where tasks are, and what a trial of any of them runs in. */
export type JobTemplate = Omit<z.infer<typeof JobTemplateJson>, keyof typeof OWNED>;

/**
 * Parses a job template, JSON or YAML by the ending of `file`. harbor itself drops unknown keys without a word, so they are refused
 * here. Throws `BadHarborInput` with everything that is wrong, a line each, naming file and field.
 */
export function parseJobTemplate(text: string, file: string): JobTemplate {
  const fields = parseJobFile(text, file);
  const parsed = JobTemplateJson.safeParse(fields);
  const problems = parsed.success ? [] : fieldProblems(JobTemplateJson, parsed.error);
  const kind = isObject(fields.environment) ? environmentKindProblem(fields.environment) : null;
  if (kind !== null) problems.push(`environment: ${kind}`);
  if ([fields.tasks, fields.datasets].every((list) => list === undefined || (Array.isArray(list) && list.length === 0)))
    problems.push('tasks, datasets: name at least one place where tasks are');
  if (problems.length > 0 || !parsed.success) throw new BadHarborInput(problems.map((problem) => `${file}: ${problem}`).join('\n'));
  return parsed.data;
}

/** Reads and parses a job template file. Throws `BadHarborInput` if it is missing or wrong. */
export async function readJobTemplate(file: string): Promise<JobTemplate> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new BadHarborInput(`${file}: cannot be read: ${error.message}`);
  });
  return parseJobTemplate(text, file);
}
