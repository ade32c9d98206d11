import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { CONFIG, Project } from '../../activities/testing/project.ts';
import { scoredTrials } from '../../activities/testing/training.ts';
import type { BlobRef } from '../../core/ids.ts';
import type { PlayedSlot } from '../../core/run/kept-trials.ts';
import { putJson } from '../../services/blobs/json.ts';
import { freePorts } from '../../services/processes/index.ts';
import type { RuleInput } from '../../trainer/faults/plan.ts';
import type { RunResult } from '../../workflows/messages.ts';
import { accessTo } from '../support/access.ts';
import { workflowBundle } from '../support/bundle.ts';
import { startTrainerProcess, type Trainer, untrainedWeights } from '../trainer-process.ts';
import { keepList, pinned, stepResult } from '../workflow/facts.ts';
import { type AllActivities, fakeActivities } from '../workflow/fake-activities.ts';
import { INPUT } from '../workflow/runs.ts';
import type { WorkerFlags } from './worker.ts';

const STEPS = 3;
const [TASKS, GROUP] = [2, 2];
const SCRIPT = join(import.meta.dirname, 'worker.ts');

/** Scores by the slot of their trial. */
type Episodes = Map<string, PlayedSlot['score']>;

/** A line of the journal, as far as a test looks at it. */
export type Line = { readonly generation: string; readonly is: string; readonly call?: string };

/**
 * A run of three steps with real training: a trainer and training workers in processes of their own, fixed trials and scores. All
 * worlds have a run of the same name, so that their seeds are the same, each in a store of its own.
 */
export class World implements AsyncDisposable {
  readonly #env: TestWorkflowEnvironment;
  readonly #project: Project;
  readonly #state = mkdtempSync(join(tmpdir(), 'stillroom-training-'));
  readonly #queue: string;
  readonly #ports: { readonly trainer: number };
  readonly #episodes: Episodes;
  readonly #run: BlobRef;
  readonly #faults: string;
  readonly #workers = new Set<ChildProcess>();
  /** The losses of each step as it was closed last. */
  readonly curve = new Map<number, readonly (number | null)[]>();
  /** What training workers wrote to their logs. */
  log = '';
  trainer: Trainer | null = null;

  private constructor(
    env: TestWorkflowEnvironment,
    project: Project,
    made: { run: BlobRef; episodes: Episodes; port: number; faults: readonly RuleInput[] },
  ) {
    this.#env = env;
    this.#project = project;
    this.#run = made.run;
    this.#episodes = made.episodes;
    this.#ports = { trainer: made.port };
    this.#queue = `training-${made.port}`;
    this.#faults = join(this.#state, 'faults.json');
    writeFileSync(this.#faults, JSON.stringify(made.faults));
  }

  /** `faults` are in force again after each start of the trainer. */
  static async make(env: TestWorkflowEnvironment, faults: readonly RuleInput[] = []): Promise<World> {
    const project = await Project.make();
    const { ref: run } = await project.resolve({
      config: CONFIG.replace('steps = 3', 'steps = 3\nnum_substeps = 2\nlearning_rate = 0.01'),
    });
    const episodes: Episodes = new Map();
    for (let step = 1; step <= STEPS; step++)
      for (const [i, { score }] of (await scoredTrials(project.blobs, 'first', step, TASKS * GROUP)).entries())
        episodes.set(`s${String(step).padStart(4, '0')}-${String(Math.floor(i / GROUP)).padStart(3, '0')}-${i % GROUP}`, score);
    const [port = 0] = await freePorts(1);
    const world = new World(env, project, { run, episodes, port, faults });
    await world.startTrainer();
    return world;
  }

  async startTrainer(): Promise<void> {
    const state = join(this.#state, 'trainer');
    this.trainer = await startTrainerProcess({ state, weights: WEIGHTS, port: this.#ports.trainer, faults: this.#faults });
  }

  /** `isDeaf`: it is never told that its attempt was given up. */
  async startWorker({ isDeaf = false } = {}): Promise<ChildProcess> {
    const flags: WorkerFlags = {
      isDeaf,
      address: this.#env.address,
      queue: this.#queue,
      trainerUrl: `http://127.0.0.1:${this.#ports.trainer}`,
      store: join(this.#project.root, 'blobs'),
    };
    const child = spawn(process.execPath, [SCRIPT, JSON.stringify(flags)], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#workers.add(child);
    child.stderr.on('data', (bytes: Buffer) => {
      this.log += bytes;
    });
    await once(createInterface(child.stdout), 'line');
    return child;
  }

  /** Runs `test` beside a run; its control and rollout workers are in this process. */
  async start<T>(test: (runId: string) => Promise<T>): Promise<T> {
    const control = `control-${this.#queue}`;
    const rollouts = `rollouts-${this.#queue}`;
    const connection = this.#env.nativeConnection;
    const activities = this.#activities(rollouts);
    const [first, second] = await Promise.all([
      Worker.create({ connection, taskQueue: control, workflowBundle: await workflowBundle(), activities }),
      Worker.create({ connection, taskQueue: rollouts, activities }),
    ]);
    const workflowId = `run-${this.#queue}`;
    return first.runUntil(
      second.runUntil(async () => {
        await this.#env.client.workflow.start('distill', { taskQueue: control, workflowId, args: [INPUT] });
        return test(workflowId);
      }),
    );
  }

  /** The journal, in the order in which it was written. */
  journal(): Line[] {
    const folder = join(this.#project.root, 'blobs/runs/first/training');
    const names = (path: string) => {
      try {
        return readdirSync(path)
          .filter((name) => !name.endsWith('.partial'))
          .sort();
      } catch {
        return [];
      }
    };
    return names(folder).flatMap((generation) =>
      names(join(folder, generation)).map((entry) => ({
        generation,
        ...JSON.parse(readFileSync(join(folder, generation, entry), 'utf8')),
      })),
    );
  }

  /** What the final weights say of a text: equal numbers only from equal weights. */
  async scores({ weights }: RunResult): Promise<readonly number[]> {
    await using models = accessTo(`http://127.0.0.1:${this.#ports.trainer}`);
    if (!weights) throw new Error('the run has no weights');
    const model = { kind: 'sampler', model: 'stillroom/tiny-student', path: weights.samplerPath, version: 'final' } as const;
    const text = Int32Array.from('files sun\n$ cp sun map\n', (char) => char.charCodeAt(0));
    const { logprobs } = await models.withSampler(model, (sampler) => sampler.promptLogprobs(text));
    return [...logprobs];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#workers) child.kill('SIGKILL');
    await this.trainer?.kill('SIGKILL');
    rmSync(this.#state, { recursive: true, force: true });
    await this.#project[Symbol.asyncDispose]();
  }

  #activities(rollouts: string): AllActivities {
    const queues = { rollouts, training: this.#queue };
    const sizes = { steps: STEPS, tasksPerBatch: TASKS, groupSize: GROUP, saveStateEvery: 2 };
    return fakeActivities({
      resolveRun: async ({ runId }) => pinned({ runId, ref: this.#run }, { ...sizes, queues }),
      scoreEpisode: async ({ trialId }) => {
        const episode = this.#episodes.get(/s\d{4}-\d{3}-\d$/.exec(trialId)?.[0] ?? '');
        if (!episode) throw new Error(`no scores for ${trialId}`);
        return { ...episode, trialId };
      },
      // In the store too, where the training itself reads them.
      keepTrials: async ({ trials }) => keepList(trials, await putJson(this.#project.blobs.of('first'), trials)),
      closeStep: async (order) => {
        this.curve.set(order.step, order.train.trained.losses);
        const closed = stepResult(order);
        return { ...closed, row: { ...closed.row, warnings: order.train.notices } };
      },
    });
  }
}

/** Of all worlds: made once, they are the same each time. */
const WEIGHTS = untrainedWeights();
process.on('exit', () => rmSync(WEIGHTS, { recursive: true, force: true }));
