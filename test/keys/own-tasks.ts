import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

const DIR = '.stillroom/test-keys';

/** How one copied task differs from the quickstart's. */
export type Change = { readonly from: string; readonly workdir?: string };

export type OwnTasks = {
  /** Relative to the project root. */
  readonly jobTemplate: string;
  readonly ids: readonly string[];
  /** What the model reads of each task, in the order of `ids`. */
  readonly instructions: readonly string[];
};

/**
 * Copies of the quickstart's tasks under ids of their own, and a job template that knows no other. Their graders report two rewards:
 * `reward` is always 0, `score` always a half.
 */
export function makeOwnTasks(name: string, changes: readonly Change[]): OwnTasks {
  const dir = join(DIR, name);
  rmSync(join(PROJECT_ROOT, dir), { recursive: true, force: true });
  const tasks = changes.map(({ from, workdir }) => {
    const id = `own-${from}`;
    const folder = join(PROJECT_ROOT, dir, 'tasks', id);
    cpSync(join(PROJECT_ROOT, '.stillroom/quickstart/tasks', from), folder, { recursive: true });
    writeFileSync(join(folder, 'tests/test.sh'), GRADER, { mode: 0o755 });
    const toml = readFileSync(join(folder, 'task.toml'), 'utf8');
    if (workdir !== undefined) writeFileSync(join(folder, 'task.toml'), toml.replace('workdir = "/app"', `workdir = "${workdir}"`));
    return { id, instruction: readFileSync(join(folder, 'instruction.md'), 'utf8') };
  });
  const template = JSON.parse(readFileSync(join(PROJECT_ROOT, 'examples/quickstart/job.json'), 'utf8')) as object;
  const jobTemplate = join(dir, 'job.json');
  writeFileSync(join(PROJECT_ROOT, jobTemplate), JSON.stringify({ ...template, datasets: [{ path: join(dir, 'tasks') }] }));
  return { jobTemplate, ids: tasks.map(({ id }) => id), instructions: tasks.map(({ instruction }) => instruction) };
}

const GRADER = '#!/bin/bash\necho \'{"reward": 0, "score": 0.5}\' > "$LOGS_DIR/verifier/reward.json"\n';
