import { FULL_METERS } from '../measures/spend.ts';
import type { ConfigError } from './parse.ts';
import { isTinyModel, ROLE_COLON, TINY_RENDERER } from './renderers.ts';
import type { RunConfig } from './schema.ts';

/** A key that asks for something this version cannot do: when it does, and what to write instead. */
type Unbuilt = { readonly field: string; readonly asks: (config: RunConfig) => boolean; readonly instead: string };

/** All that the config can ask for and this version cannot do. */
export const UNBUILT: readonly Unbuilt[] = [
  { field: 'teacher.backend', asks: (c) => c.teacher.backend === 'openai_compat', instead: 'use backend = "tinker"' },
  { field: 'harbor.backend', asks: (c) => c.harbor.backend === 'e2b', instead: 'use backend = "local"' },
  {
    field: 'rollout.renderers',
    asks: (c) => Object.values(c.rollout.renderers).includes(ROLE_COLON),
    instead: 'role_colon is for models without a chat template: name a model that has one',
  },
  { field: 'train.overlap_steps', asks: (c) => c.train.overlap_steps > 0, instead: 'use overlap_steps = 0' },
  { field: 'wandb.enabled', asks: (c) => c.wandb.enabled, instead: 'use enabled = false; rows are in metrics.jsonl' },
];

/** Keys of the teacher that may be empty in a file that is only read, and name nothing to a run. */
const NAMES_TO_FILL_IN = ['endpoint', 'tokenizer'] as const;

/** The keys of a valid config that no run can start with, each by name. A run that has any is refused at start, never run without them. */
export function startProblems(config: RunConfig): ConfigError[] {
  return [...unbuilt(config), ...emptyNames(config), ...uselessLimits(config), ...misplacedRenderers(config)];
}

function unbuilt(config: RunConfig): ConfigError[] {
  return UNBUILT.filter(({ asks }) => asks(config)).map(({ field, instead }) => ({
    field,
    kind: 'not_built',
    message: `${field} asks for something this version cannot do; ${instead}`,
  }));
}

/** A limit of a trial's cost holds only where every token of a trial has a price, and only under the run's own cap. */
function uselessLimits(config: RunConfig): ConfigError[] {
  const { max_usd: runUsd, max_usd_per_trial: trialUsd } = config.budget;
  if (trialUsd === null) return [];
  const unpriced = FULL_METERS.filter((meter) => config.pricing[meter] === null && (meter !== 'teacher_sample' || samplesTeacher(config)));
  const field = 'budget.max_usd_per_trial';
  const said = [
    ...(unpriced.length === 0
      ? []
      : [`cannot be kept without prices: set ${unpriced.join(', ')} in [pricing] (0 for what is free), or remove the key`]),
    ...(runUsd !== null && trialUsd > runUsd ? [`is above budget.max_usd: no trial could start`] : []),
  ];
  return said.map((what) => ({ field, kind: 'rule', message: `${field} ${what}` }));
}

/** The tiny models' ids mean nothing to any other model, which would be trained on them all the same. */
function misplacedRenderers({ rollout: { renderers } }: RunConfig): ConfigError[] {
  return Object.entries(renderers)
    .filter(([model, name]) => name === TINY_RENDERER && !isTinyModel(model))
    .map(([model]) => ({
      field: 'rollout.renderers',
      kind: 'rule',
      message: `rollout.renderers gives ${model} the renderer "${TINY_RENDERER}", which is that of the embedded tiny models alone; leave it out`,
    }));
}

/** Whether the teacher plays any trial of the run. */
function samplesTeacher({ eval: { teacher_baseline_from: imported }, warmup }: RunConfig): boolean {
  return imported === null || (warmup.steps > 0 && warmup.trajectories_from === null);
}

function emptyNames({ teacher }: RunConfig): ConfigError[] {
  return NAMES_TO_FILL_IN.filter((key) => teacher[key]?.trim() === '').map((key) => ({
    field: `teacher.${key}`,
    kind: 'rule',
    message: `teacher.${key} is empty; name the teacher's ${key}, or remove the key`,
  }));
}
