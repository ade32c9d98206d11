import type { RunConfig } from '../config/schema.ts';
import type { SamplerPath } from '../ids.ts';
import type { ModelRef } from './trial.ts';

/** The student as it is before any training: its base model. */
export const studentOf = ({ base_model: model }: RunConfig['student']): ModelRef => ({ kind: 'base', model, version: model });

/** The teacher as it is sampled and asked for scores: its base model, or the sampler weights that `teacher.checkpoint` names. */
export function teacherOf({ model, checkpoint }: Pick<RunConfig['teacher'], 'model' | 'checkpoint'>): ModelRef {
  return checkpoint === null
    ? { kind: 'base', model, version: model }
    : { kind: 'sampler', model, path: checkpoint as SamplerPath, version: checkpoint };
}
