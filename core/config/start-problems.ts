import type { ConfigError } from './parse.ts';
import type { RunConfig } from './schema.ts';

/** A key that asks for something this version cannot do: when it does, and what to write instead. */
type Unbuilt = { readonly field: string; readonly asks: (config: RunConfig) => boolean; readonly instead: string };

/** All that the config can ask for and this version cannot do. */
export const UNBUILT: readonly Unbuilt[] = [
  { field: 'teacher.backend', asks: (c) => c.teacher.backend === 'openai_compat', instead: 'use backend = "tinker"' },
  { field: 'harbor.backend', asks: (c) => c.harbor.backend === 'e2b', instead: 'use backend = "local"' },
  { field: 'rollout.compaction', asks: (c) => c.rollout.compaction, instead: 'use compaction = false' },
  { field: 'train.overlap_steps', asks: (c) => c.train.overlap_steps > 0, instead: 'use overlap_steps = 0' },
  {
    field: 'budget.max_usd_per_trial',
    asks: (c) => c.budget.max_usd_per_trial !== null,
    instead: 'remove the key; budget.max_usd caps the run',
  },
  { field: 'wandb.enabled', asks: (c) => c.wandb.enabled, instead: 'use enabled = false; rows are in metrics.jsonl' },
];

/** Keys of the teacher that may be empty in a file that is only read, and name nothing to a run. */
const NAMES_TO_FILL_IN = ['endpoint', 'tokenizer'] as const;

/** The keys of a valid config that no run can start with, each by name. A run that has any is refused at start, never run without them. */
export function startProblems(config: RunConfig): ConfigError[] {
  return [...unbuilt(config), ...emptyNames(config)];
}

function unbuilt(config: RunConfig): ConfigError[] {
  return UNBUILT.filter(({ asks }) => asks(config)).map(({ field, instead }) => ({
    field,
    kind: 'not_built',
    message: `${field} asks for something this version cannot do; ${instead}`,
  }));
}

function emptyNames({ teacher }: RunConfig): ConfigError[] {
  return NAMES_TO_FILL_IN.filter((key) => teacher[key]?.trim() === '').map((key) => ({
    field: `teacher.${key}`,
    kind: 'rule',
    message: `teacher.${key} is empty; name the teacher's ${key}, or remove the key`,
  }));
}
