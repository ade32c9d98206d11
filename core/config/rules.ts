import { isVerbatimRenderer } from './renderers.ts';
import type { RunConfig, SectionName } from './schema.ts';

/** What is wrong with a section whose fields are all fine by themselves; each entry is one sentence. */
type SectionRule<Name extends SectionName> = (section: RunConfig[Name]) => (string | null)[];

export const sectionRules: { readonly [Name in SectionName]?: SectionRule<Name> } = {
  teacher: (t) =>
    t.backend === 'openai_compat'
      ? [
          t.endpoint === null ? 'backend "openai_compat" needs endpoint' : null,
          t.tokenizer === null ? 'backend "openai_compat" needs tokenizer' : null,
          t.alignment === 'chunk' ? null : 'backend "openai_compat" needs alignment = "chunk"',
          t.checkpoint === null ? null : 'backend "openai_compat" has no checkpoint; remove it',
        ]
      : [
          t.endpoint === null ? null : 'backend "tinker" has no endpoint; remove it or set backend = "openai_compat"',
          t.alignment === 'same_tokenizer' ? null : 'backend "tinker" needs alignment = "same_tokenizer"',
          t.checkpoint === null || t.checkpoint.startsWith('tinker://') ? null : 'checkpoint must start with tinker://',
        ],
  rollout: (r) => [r.compaction ? verbatimRule(r.renderers) : null],
  warmup: (w) => [w.trajectories_from === '' ? 'trajectories_from is empty; name a run or remove the key' : null],
  eval: (e) => [
    e.teacher_baseline_from === '' ? 'teacher_baseline_from is empty; name a report or remove the key' : null,
    e.student_baseline_from === '' ? 'student_baseline_from is empty; name a report or remove the key' : null,
    e.defer_baselines && !e.student_baseline_from
      ? 'defer_baselines needs student_baseline_from: the student changes before it is measured'
      : null,
  ],
  tripwire: (t) => [
    t.entropy_kill_frac > t.entropy_warn_frac ? 'entropy_kill_frac must not be above entropy_warn_frac' : null,
    t.length_kill_frac > t.length_warn_frac ? 'length_kill_frac must not be above length_warn_frac' : null,
    t.entropy_kill_mult < t.entropy_warn_mult ? 'entropy_kill_mult must not be below entropy_warn_mult' : null,
    t.length_kill_mult < t.length_warn_mult ? 'length_kill_mult must not be below length_warn_mult' : null,
  ],
  checkpoints: (c) => [lifeRule(c.ttl_days)],
};

/** A renderer that shows a history as it was cannot show one that its agent rewrites. */
function verbatimRule(renderers: RunConfig['rollout']['renderers']): string | null {
  const [found] = Object.entries(renderers).filter(([, name]) => isVerbatimRenderer(name));
  if (!found) return null;
  const [model, name] = found;
  return `compaction rewrites history, which the renderer ${name} of ${model} cannot show: set compaction = false, or name another renderer`;
}

/** Services take lives of an hour to ten years. */
const LEAST_DAYS = 1 / 24;
const MOST_DAYS = 3650;

function lifeRule(days: number | null): string | null {
  if (days === null || (days >= LEAST_DAYS && days <= MOST_DAYS)) return null;
  return `ttl_days must be between an hour (1/24, about 0.0417) and ${MOST_DAYS}; services take no other life`;
}

/** What is wrong between sections. */
export function documentRules(config: RunConfig): (string | null)[] {
  const models = new Set([config.student.base_model, config.teacher.model]);
  const strangers = Object.keys(config.rollout.renderers).filter((model) => !models.has(model));
  return [
    config.teacher.alignment === 'chunk' && config.train.loss === 'topk_ce'
      ? 'train.loss = "topk_ce" needs a teacher with the same tokenizer; teacher.alignment is "chunk"'
      : null,
    strangers.length > 0
      ? `rollout.renderers names ${strangers.map((model) => JSON.stringify(model)).join(', ')}, neither student nor teacher`
      : null,
  ];
}
