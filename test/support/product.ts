import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'smol-toml';
import type { TrainingDeps } from '../../activities/training.ts';
import { connectTo, type Link } from '../../client/connection.ts';
import { stackOptions } from '../../client/stack/options.ts';
import { type Stack, startStack } from '../../client/stack/stack.ts';
import { generateQuickstart } from '../../examples/quickstart/generate.ts';
import { freePorts, requireFreePort } from '../../services/processes/index.ts';
import { ALL_ROLES, type AppSettings, PROJECT_ROOT, type Role, readAppSettings, readEnvironment } from '../../services/settings/index.ts';
import { startWorker } from '../../worker.ts';
import type { RunResult, RunStatus } from '../../workflows/messages.ts';
import { shareBundle } from './bundle.ts';

/**
 * A whole Stillroom on ports and folders of its own: Temporal server, trainer, and worker processes, each of one role (null: of all),
 * unless `workers` is empty.
 */
export type Product = AsyncDisposable & {
  readonly stack: Stack;
  readonly link: Link;
  readonly stateDir: string;
  /** Where its trainer writes down the calls that it carried out. */
  readonly callLogFile: string;
  readonly settings: AppSettings;
  /** Where the first worker serves its metrics; each next one has the next port. Null without `metrics`. */
  readonly metricsPort: number | null;
};

export type ProductParts = { readonly workers: readonly (Role | null)[]; readonly metrics?: boolean };

export async function startProduct({ workers: wanted, metrics = false }: ProductParts): Promise<Product> {
  const stateDir = mkdtempSync(join(tmpdir(), 'stillroom-product-'));
  await shareBundle(stateDir);
  const [port, uiPort, trainerPort] = (await freePorts(3)) as [number, number, number];
  const metricsPort = metrics ? await firstOfFreePorts(wanted.length) : null;
  const settings = readAppSettings();
  const workers = wanted.map((role) => role ?? ALL_ROLES);
  const callLogFile = join(stateDir, 'trainer-calls.jsonl');
  process.env.STILLROOM_TRAINER_CALL_LOG = callLogFile; // the trainer is started with our environment
  const options = stackOptions({ port, uiPort, trainerPort, state: stateDir }, settings, readEnvironment(), { workers, trainer: true });
  const stack = await startStack(
    { ...options, metricsPort },
    {
      onNotice: ({ line }) => console.log(line),
      onStep: () => {},
      signal: new AbortController().signal,
    },
  );
  const link = await connectTo(stack.address);
  return {
    stack,
    link,
    stateDir,
    callLogFile,
    settings,
    metricsPort,
    [Symbol.asyncDispose]: async () => {
      await link.close();
      await stack.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

/** A free port after which as many more are free as make `count`. */
async function firstOfFreePorts(count: number): Promise<number> {
  for (;;) {
    const [first = 0] = await freePorts(1);
    const tried = await Promise.allSettled(Array.from({ length: count }, (_, i) => requireFreePort(first + i, 'metrics', '')));
    if (tried.every(({ status }) => status === 'fulfilled')) return first;
  }
}

export type WorkerHere = {
  /** Where the worker finds the training service; the product's own by default. */
  readonly trainerUrl?: string;
  readonly alterAdvantages?: TrainingDeps['alterAdvantages'];
};

/** A worker in this process, for what a worker process does not offer: changed advantages, another way to the trainer. */
export async function startWorkerHere(product: Product, { trainerUrl, alterAdvantages }: WorkerHere = {}): Promise<AsyncDisposable> {
  Object.assign(process.env, {
    TEMPORAL_ADDRESS: product.stack.address,
    TINKER_BASE_URL: trainerUrl ?? product.stack.trainerUrl,
    TINKER_API_KEY: TRAINER_KEY,
  });
  const worker = await startWorker({
    roles: ['control', 'rollouts', 'training'],
    settings: product.settings,
    stateDir: product.stateDir,
    ...(alterAdvantages ? { alterAdvantages } : {}),
  });
  return {
    [Symbol.asyncDispose]: async () => {
      worker.shutdown();
      await worker.ended;
    },
  };
}

/** What the embedded trainer takes for a key. */
export const TRAINER_KEY = 'tml-local-test';

export async function withWorkerHere<T>(
  product: Product,
  alterAdvantages: TrainingDeps['alterAdvantages'],
  work: () => Promise<T>,
): Promise<T> {
  await using _ = await startWorkerHere(product, alterAdvantages ? { alterAdvantages } : {});
  return await work();
}

/** The quickstart, shortened: fewer and smaller steps, two attempts a task, and a gate that wants proof of a gain. */
export const SHORT = {
  'train.steps': 8,
  'train.tasks_per_batch': 16,
  'train.learning_rate': 6e-3,
  'gate.k': 2,
  'gate.min_teacher_fraction': 0.5,
  'gate.confidence': 0.95,
};

const QUICKSTART_TOML = join(PROJECT_ROOT, 'examples/quickstart/run.toml');

/** Keys of the quickstart's config, as `section.key`, with other values; null removes a key. */
export type Keys = Readonly<Record<string, unknown>>;

/** The quickstart's config with other values. */
export function configWith(keys: Keys): string {
  const document = parse(readFileSync(QUICKSTART_TOML, 'utf8')) as Record<string, Record<string, unknown>>;
  for (const [path, value] of Object.entries(keys)) {
    const [section = '', key = ''] = path.split('.');
    document[section] ??= {};
    if (value === null) delete document[section][key];
    else document[section][key] = value;
  }
  return stringify(document);
}

/** A run's input: the text of its config, and the ids of its tasks. */
export type Wanted = { readonly config: string; readonly taskIds: readonly string[]; readonly holdoutTaskIds: readonly string[] };

/** Removes all that an earlier run of this id left here: with it goes the claim of the id. */
export function forgetRun({ blobStore, runRoot }: AppSettings, runId: string): void {
  const places = [join(PROJECT_ROOT, runDirOf(runId)), join(runRoot, runId)];
  if (blobStore.kind === 'folder') places.push(join(blobStore.path, 'runs', runId));
  for (const used of places) rmSync(used, { recursive: true, force: true });
}

/** Starts a run. All seeds of a run follow from its id, so the same `runId` on a new product repeats the same run; it is forgotten first. */
export async function startRun({ link, settings }: Product, wanted: Wanted, runId: string) {
  forgetRun(settings, runId);
  return link.client.workflow.start('distill', {
    taskQueue: settings.taskQueues.control,
    workflowId: runId,
    args: [{ agent: 'turn', ...wanted, yes: true, runDir: runDirOf(runId) }],
  });
}

/** Where a run of the tests keeps its folder, below the project root. */
export const runDirOf = (runId: string) => `.stillroom/test-runs/${runId}`;

/**
 * Starts the quickstart's run with some of its settings changed. `trainTasks` is how many tasks of the training split it has; they come
 * with their kinds in turn.
 */
export async function startQuickstart(product: Product, keys: Keys, runId: string, trainTasks = Number.POSITIVE_INFINITY) {
  const { trainIds, holdoutIds } = generateQuickstart(join(PROJECT_ROOT, '.stillroom/quickstart'));
  return startRun(product, { config: configWith(keys), taskIds: trainIds.slice(0, trainTasks), holdoutTaskIds: holdoutIds }, runId);
}

export type Ended = { readonly result: RunResult; readonly status: RunStatus };

export async function runQuickstart(product: Product, keys: Keys, runId: string, trainTasks?: number): Promise<Ended> {
  const handle = await startQuickstart(product, keys, runId, trainTasks);
  const result = (await handle.result()) as RunResult;
  return { result, status: await handle.query<RunStatus>('status') };
}

/** What the run found, in one line a person can read. */
export function told({ result: { outcome, verdict }, status }: Ended): string {
  const percent = (rate: number | null | undefined) => (rate == null ? '–' : `${(rate * 100).toFixed(1)} %`);
  const improvement = verdict?.improvement;
  const interval = improvement
    ? ` (${improvement.mean.toFixed(3)}, 95 % ${improvement.interval.low.toFixed(3)} to ${improvement.interval.high.toFixed(3)})`
    : '';
  const why = verdict ? verdict.reasons.join(', ') : status.notices.at(-1);
  return `${outcome}: before ${percent(verdict?.before)} → after ${percent(verdict?.after)}${interval}, teacher ${percent(verdict?.teacher)}${why ? `; ${why}` : ''}`;
}
