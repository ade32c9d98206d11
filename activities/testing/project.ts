import { chmod, mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ApplicationFailure } from '@temporalio/common';
import type { BlobRef } from '../../core/ids.ts';
import { StoredHarness } from '../../core/run/harness-document.ts';
import type { KeptTrials } from '../../core/run/kept-trials.ts';
import type { StartInput } from '../../core/run/start-input.ts';
import type { TrialSummary } from '../../core/run/trial.ts';
import { BlobStore } from '../../services/blobs/blob-store.ts';
import { FileObjectStore } from '../../services/blobs/file-object-store.ts';
import type { ObjectStore } from '../../services/blobs/object-store.ts';
import { TaskCache } from '../../services/harbor/index.ts';
import { HarnessStore } from '../../services/stores/harness-store.ts';
import { createInputActivities } from '../inputs.ts';
import { createKeptTrialsActivities } from '../kept-trials.ts';
import { type RunFiles, type RunPlace, runFiles } from '../run-files.ts';
import { RunRecords } from '../run-records.ts';

export const CONFIG = `
[student]
base_model = "stillroom/tiny-student"
[teacher]
model = "stillroom/tiny-teacher"
[harbor]
job_template = "job.json"
[rollout]
episode_timeout_s = 30
context_budget_tokens = 1024
[rollout.renderers]
"stillroom/tiny-student" = "stillroom_tiny"
"stillroom/tiny-teacher" = "stillroom_tiny"
[train]
steps = 3
tasks_per_batch = 2
[sampling]
max_tokens = 28
[pricing]
student_sample = 0.5
`;

export const TEMPLATE = {
  environment: { import_path: 'stillroom_harbor.environment:ProcessEnvironment', kwargs: { mode: 'bwrap' } },
  verifier: { import_path: 'stillroom_harbor.environment:HostVerifier' },
  datasets: [{ path: 'tasks' }],
};

/** What a run of this project starts from, unless a test says otherwise. */
export const INPUT: StartInput = { agent: 'turn', config: 'run.toml', taskIds: 'train.json', holdoutTaskIds: 'holdout.json' };

export const REWARDING = 'echo 0 > "$LOGS_DIR/verifier/reward.txt"\n';

/** A project root in a temp folder: config, template, split files, and tasks a, b (to train on), x, y (held out). */
export class Project implements AsyncDisposable {
  readonly root: string;
  readonly objects: ObjectStore;
  readonly blobs: BlobStore;
  readonly records: RunRecords;
  readonly harnesses: HarnessStore<StoredHarness>;
  readonly tasks: TaskCache;

  private constructor(root: string, objects?: ObjectStore) {
    this.root = root;
    this.objects = objects ?? new FileObjectStore(join(root, 'blobs'));
    this.blobs = new BlobStore(this.objects);
    this.folderOf = runFiles(this.objects, root);
    this.records = new RunRecords(this.blobs);
    this.tasks = new TaskCache({ dir: join(root, '.stillroom/cache/tasks'), projectRoot: root });
    this.harnesses = new HarnessStore(join(root, '.stillroom/harnesses'), StoredHarness);
  }

  /** With `objects`, as on another machine that shares their store. */
  static async make(objects?: ObjectStore): Promise<Project> {
    const project = new Project(await realpath(await mkdtemp(join(tmpdir(), 'stillroom-activities-'))), objects);
    for (const id of ['a', 'b', 'x', 'y']) await project.task(id);
    await project.file('run.toml', CONFIG);
    await project.file('job.json', JSON.stringify(TEMPLATE));
    await project.file('train.json', '["a", "b"]');
    await project.file('holdout.json', '["x", "y"]');
    return project;
  }

  async file(path: string, text: string): Promise<void> {
    await mkdir(dirname(join(this.root, path)), { recursive: true });
    await writeFile(join(this.root, path), text);
  }

  async task(id: string, { content = id, testScript = REWARDING as string | null } = {}): Promise<void> {
    await this.file(`tasks/${id}/task.toml`, `schema_version = "1.4"\n[task]\nname = "lab/${id}"\n`);
    await this.file(`tasks/${id}/instruction.md`, `files sun\ntask ${content}\n`);
    await this.file(`tasks/${id}/environment/sun`, '7\n');
    if (testScript === null) return;
    await this.file(`tasks/${id}/tests/test.sh`, `#!/bin/sh\n${testScript}`);
    await chmod(join(this.root, `tasks/${id}/tests/test.sh`), 0o755);
  }

  /** What the root holds below a folder; empty where it is not there. */
  async names(folder: string): Promise<string[]> {
    return (await readdir(join(this.root, folder)).catch(() => [])).sort();
  }

  readonly folderOf: (run: RunPlace) => RunFiles;

  inputs(records = this.records) {
    const settings = { runRoot: 'runs', taskQueues: { control: 'c', rollouts: 'r', training: 't' } };
    return createInputActivities({
      records,
      blobs: this.blobs,
      objects: this.objects,
      projectRoot: this.root,
      settings,
      tasks: this.tasks,
      harnesses: this.harnesses,
    });
  }

  resolve(input: Partial<StartInput> = {}, { runId = 'first', executionId = 'e1' } = {}) {
    return this.inputs().resolveRun({ runId, executionId, input: { ...INPUT, ...input } });
  }

  /** Trials of a batch, kept as a run keeps them; each in a slot of its own, in this order. */
  async kept(run: BlobRef, trials: readonly TrialSummary[]): Promise<KeptTrials> {
    const played = trials.map((trial, place) => ({ slot: String(place).padStart(6, '0'), trial, score: null }));
    const list = await createKeptTrialsActivities({ records: this.records, blobs: this.blobs }).keepTrials({ run, trials: played });
    return { lists: [list], count: trials.length };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}

/** How an activity failed, as the server would be told. */
export async function failureOf(work: Promise<unknown>): Promise<Pick<ApplicationFailure, 'type' | 'nonRetryable' | 'message'>> {
  try {
    await work;
  } catch (error) {
    if (error instanceof ApplicationFailure) return { type: error.type, nonRetryable: error.nonRetryable, message: error.message };
    throw error;
  }
  throw new Error('it did not fail');
}
