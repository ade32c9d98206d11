import { z } from 'zod';
import { BlobRefText, type TrialId } from '../ids.ts';
import { some } from './task-ids.ts';
import type { PinnedTask } from './trial.ts';
import type { Trajectory } from './warm-up.ts';

/** The file of a run's folder that another run's `warmup.trajectories_from` can name. */
export const TRAJECTORY_FILE = 'warmup-trajectories.json';

const Trial = z.strictObject({
  trial_id: z.string().min(1),
  task_id: z.string().min(1),
  task_digest: z.string().min(1),
  passed: z.boolean(),
  executed: z.boolean(),
  sampled_tokens: z.int().min(0),
  spans: BlobRefText.nullable(),
});
const Teacher = z.strictObject({ model: z.string(), checkpoint: z.string().nullable(), renderer: z.string().nullable() });
const Document = z.strictObject({
  version: z.literal(1),
  run_id: z.string(),
  teacher: Teacher,
  student_base_model: z.string(),
  agent: z.strictObject({ name: z.string(), ref: z.string(), hash: z.string() }),
  task_ids: z.array(z.string()),
  trials: z.array(Trial),
});

/** The trajectories that a run keeps for itself, as JSON. */
export const TrajectoryList: z.ZodType<readonly Trajectory[]> = z.array(
  z.object({
    trialId: z
      .string()
      .min(1)
      .transform((text) => text as TrialId),
    taskId: z.string().min(1),
    passed: z.boolean(),
    executed: z.boolean(),
    sampledTokens: z.int().min(0),
    spans: BlobRefText.nullable(),
  }),
);

/** Who played, as what the trajectories are worth depends on: another teacher, or the same one read through another template, is another lesson. */
export type TeacherIdentity = z.infer<typeof Teacher>;
export type TrajectoryDocument = z.infer<typeof Document>;

export type TrajectoryRead =
  | { readonly document: TrajectoryDocument; readonly problem: null }
  | { readonly document: null; readonly problem: string };

/** Reads the text of a trajectory file. Nothing is taken on trust: an unknown key or version is a problem. */
export function parseTrajectories(text: string): TrajectoryRead {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    return { document: null, problem: `not JSON: ${(error as Error).message}` };
  }
  const parsed = Document.safeParse(json);
  if (parsed.success) return { document: parsed.data, problem: null };
  const issues = parsed.error.issues.map(({ path, message }) => `${path.length === 0 ? '' : `${path.join('.')}: `}${message}`);
  return { document: null, problem: `not the trajectories of a warm-up: ${some(issues, '; ')}` };
}

export type TrajectoryUse = {
  readonly teacher: TeacherIdentity;
  readonly train: readonly PinnedTask[];
  readonly holdout: readonly Pick<PinnedTask, 'id'>[];
};

/**
 * Why a run must not warm up on these trajectories; null when it may. They must come from the run's own teacher, and from its training
 * tasks as they are now: an episode of a held-out task, or of a task that was changed since, would make the gate's measurement worthless.
 */
export function trajectoryProblem(document: TrajectoryDocument, { teacher, train, holdout }: TrajectoryUse): string | null {
  const keys = ['model', 'checkpoint', 'renderer'] as const;
  const other = keys.find((key) => document.teacher[key] !== teacher[key]);
  if (other !== undefined)
    return `its teacher's ${other} is ${JSON.stringify(document.teacher[other])}, this run's is ${JSON.stringify(teacher[other])}`;
  const trialIds = new Set(document.trials.map((trial) => trial.trial_id));
  if (trialIds.size < document.trials.length) return 'it lists a trial twice';
  const heldOut = new Set(holdout.map(({ id }) => id));
  const digests = new Map(train.map(({ id, digest }) => [id, digest]));
  const taskIds = [...new Set([...document.task_ids, ...document.trials.map((trial) => trial.task_id)])];
  const leaked = taskIds.filter((id) => heldOut.has(id));
  if (leaked.length > 0) return `it holds episodes of held-out tasks: ${some(leaked)}`;
  const strangers = taskIds.filter((id) => !digests.has(id));
  if (strangers.length > 0) return `it holds episodes of tasks that are not in this run's training split: ${some(strangers)}`;
  const changed = new Set(document.trials.flatMap((trial) => (digests.get(trial.task_id) === trial.task_digest ? [] : [trial.task_id])));
  return changed.size > 0 ? `tasks changed since its episodes were played: ${some([...changed])}` : null;
}

/** The trajectories of a file, as a run has them. */
export function trajectoriesIn({ trials }: TrajectoryDocument): Trajectory[] {
  return trials.map(({ trial_id, task_id, passed, executed, sampled_tokens, spans }) => ({
    trialId: trial_id as TrialId,
    taskId: task_id,
    passed,
    executed,
    sampledTokens: sampled_tokens,
    spans,
  }));
}

export type TrajectorySource = Pick<TrajectoryDocument, 'run_id' | 'teacher' | 'student_base_model' | 'agent'> & {
  readonly train: readonly PinnedTask[];
};

/** The trajectories of one run with what they come from, as its file has them. */
export function trajectoryDocument({ train, ...source }: TrajectorySource, trajectories: readonly Trajectory[]): TrajectoryDocument {
  const digests = new Map(train.map(({ id, digest }) => [id, digest]));
  return {
    version: 1,
    ...source,
    task_ids: train.map(({ id }) => id),
    trials: trajectories.map(({ trialId, taskId, passed, executed, sampledTokens, spans }) => ({
      trial_id: trialId,
      task_id: taskId,
      task_digest: digests.get(taskId) ?? '',
      passed,
      executed,
      sampled_tokens: sampledTokens,
      spans,
    })),
  };
}
