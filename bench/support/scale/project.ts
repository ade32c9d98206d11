import { Project } from '../../../activities/testing/project.ts';

export type Size = { readonly steps: number; readonly tasks: number; readonly group: number; readonly holdout: number; readonly k: number };

const names = (kind: string, count: number) => Array.from({ length: count }, (_, index) => `${kind}-${String(index).padStart(4, '0')}`);

const configOf = ({ steps, tasks, group, k }: Size, concurrency: number) => `
[student]
base_model = "stillroom/tiny-student"
[teacher]
model = "stillroom/tiny-teacher"
[harbor]
job_template = "job.json"
[rollout]
context_budget_tokens = 1024
[rollout.renderers]
"stillroom/tiny-student" = "stillroom_tiny"
"stillroom/tiny-teacher" = "stillroom_tiny"
[train]
steps = ${steps}
tasks_per_batch = ${tasks}
group_size = ${group}
trial_concurrency = ${concurrency}
log_sample_rollouts = 0
[gate]
k = ${k}
[tripwire]
enabled = false
[budget]
max_usd = 1000000
`;

/** A project root with tasks for a run of this size, and what the run is started with. */
export async function scaleProject(size: Size, concurrency: number) {
  const project = await Project.make();
  const [taskIds, holdoutTaskIds] = [names('train', size.tasks), names('holdout', size.holdout)];
  for (const id of [...taskIds, ...holdoutTaskIds]) await project.task(id);
  return { project, input: { agent: 'turn', config: configOf(size, concurrency), taskIds, holdoutTaskIds, yes: true } };
}
