import { z } from 'zod';
import { isKnownRenderer, RENDERER_NAMES } from './renderers.ts';

/** What is said of a value that should be a whole number and is none: a fraction, an infinity, one too large to be exact. */
export const NOT_WHOLE = 'must be a whole number';

/** Shapes of the run config's sections, one per TOML table; every default is stated here. Ranges refuse NaN and infinities. */
const optional = <T extends z.ZodType>(schema: T) => schema.nullable().default(null);
const atLeast = (least: number) => z.int(NOT_WHOLE).min(least, `must be at least ${least}`);
const between = (least: number, most: number) => atLeast(least).max(most, `must be at most ${most}`);
const fraction = (value: number) => z.number().gt(0).max(1).default(value);
const multiple = (value: number) => z.number().gt(1).default(value);
const name = z.string().min(1);
const usdPerMtok = optional(z.number().min(0));

export const sections = {
  student: z.strictObject({ base_model: name, lora_rank: atLeast(1).default(32) }),
  teacher: z.strictObject({
    backend: z.enum(['tinker', 'openai_compat']).default('tinker'),
    model: name,
    checkpoint: optional(z.string()),
    endpoint: optional(z.string()),
    tokenizer: optional(z.string()),
    alignment: z.enum(['same_tokenizer', 'chunk']).default('same_tokenizer'),
  }),
  harbor: z.strictObject({
    job_template: name,
    backend: z.enum(['local', 'e2b']).default('local'),
    reward_key: name.default('reward'),
    retries: atLeast(0).default(1),
    same_cause_failures: optional(atLeast(0)),
    keep_files: z.enum(['failed', 'all', 'none']).default('failed'),
  }),
  rollout: z.strictObject({
    max_turns: atLeast(1).default(100),
    episode_timeout_s: z.number().gt(0).default(1800),
    context_budget_tokens: atLeast(1024).default(65536),
    renderers: z
      .record(z.string(), z.string())
      .refine((names) => Object.values(names).every(isKnownRenderer), {
        error: `names a renderer that is not known; known are ${RENDERER_NAMES.join(', ')}. A model without one has its own template`,
      })
      .default({}),
    compaction: z.boolean().default(false),
  }),
  train: z.strictObject({
    steps: atLeast(1).default(40),
    tasks_per_batch: atLeast(1).default(8),
    group_size: atLeast(1).default(4),
    learning_rate: z.number().gt(0).default(1e-4),
    loss: z.enum(['importance_sampling', 'ppo', 'topk_ce']).default('importance_sampling'),
    topk: between(1, 64).default(8),
    advantage_clip: optional(z.number().gt(0)),
    center_advantages: z.boolean().default(false),
    max_datum_tokens: atLeast(1).default(65536),
    sampler_refresh_every: atLeast(1).default(1),
    save_state_every: atLeast(1).default(8),
    trial_concurrency: atLeast(1).default(8),
    num_substeps: atLeast(1).default(1),
    rollout_max_turns: optional(atLeast(1)),
    log_sample_rollouts: atLeast(0).default(2),
    overlap_steps: between(0, 1).default(0),
  }),
  sampling: z.strictObject({ temperature: z.number().min(0).max(2).default(1), max_tokens: atLeast(1).default(8192) }),
  warmup: z.strictObject({
    steps: atLeast(0).default(0),
    rollouts_per_task: atLeast(1).default(1),
    keep: z.enum(['passed', 'all']).default('passed'),
    learning_rate: optional(z.number().gt(0)),
    trajectories_from: optional(z.string()),
  }),
  eval: z.strictObject({
    every: atLeast(0).default(0),
    tasks: atLeast(1).default(12),
    k: atLeast(1).default(1),
    teacher_baseline_from: optional(z.string()),
    student_baseline_from: optional(z.string()),
    defer_baselines: z.boolean().default(false),
  }),
  gate: z.strictObject({
    k: atLeast(1).default(3),
    min_teacher_fraction: fraction(0.7),
    require_no_regression: z.boolean().default(true),
    confidence: optional(z.number().gt(0).lt(1)),
  }),
  pricing: z.strictObject({
    student_prefill: usdPerMtok,
    student_cached_prefill: usdPerMtok,
    student_sample: usdPerMtok,
    student_train: usdPerMtok,
    teacher_prefill: usdPerMtok,
    teacher_cached_prefill: usdPerMtok,
    teacher_sample: usdPerMtok,
  }),
  budget: z.strictObject({ max_usd: optional(z.number().gt(0)), max_usd_per_trial: optional(z.number().gt(0)) }),
  tripwire: z.strictObject({
    enabled: z.boolean().default(true),
    entropy_warn_frac: fraction(0.5),
    entropy_kill_frac: fraction(0.3),
    length_warn_frac: fraction(0.5),
    length_kill_frac: fraction(0.25),
    entropy_warn_mult: multiple(1.5),
    entropy_kill_mult: multiple(2.5),
    length_warn_mult: multiple(2),
    length_kill_mult: multiple(3),
    kill_consecutive_steps: atLeast(1).default(2),
  }),
  wandb: z.strictObject({
    enabled: z.boolean().default(false),
    project: z.string().default('stillroom'),
    entity: optional(z.string()),
    run_name: optional(z.string()),
    tags: z.array(z.string()).default([]),
  }),
  checkpoints: z.strictObject({ ttl_days: optional(z.number().gt(0)), keep_last: optional(atLeast(1)) }),
};

export type SectionName = keyof typeof sections;

/** The whole run config, every default filled in; absent optional keys are null. Keys are spelled as in the TOML. */
export type RunConfig = { readonly [Name in SectionName]: Readonly<z.infer<(typeof sections)[Name]>> };
