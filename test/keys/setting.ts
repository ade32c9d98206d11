import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkflowHandle } from '@temporalio/client';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import type { MetricsRow } from '../../core/measures/metrics-row.ts';
import { stepName } from '../../core/run/step-name.ts';
import { generateQuickstart } from '../../examples/quickstart/generate.ts';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import type { RunResult, RunStatus } from '../../workflows/messages.ts';
import { AlteringProxy, type Faults } from '../support/altering-proxy.ts';
import {
  configWith,
  type Ended,
  type Keys,
  type Product,
  runDirOf,
  startProduct,
  startRun,
  startWorkerHere,
  type Wanted,
} from '../support/product.ts';
import { Traffic } from './traffic.ts';
import { type Played, playedTrials } from './trials.ts';

/** What a run left, wherever it left it. */
export type Observed = Ended & {
  /** Lines of `metrics.jsonl`, in their order. */
  readonly rows: readonly MetricsRow[];
  /** Names of the files in the run folder. */
  readonly files: readonly string[];
  readonly read: (name: string) => string;
  readonly traffic: Traffic;
  readonly steps: readonly Played[];
  /** Those that were measured, in the order of `result.evaluations`. */
  readonly evaluations: readonly Played[];
};

/** Called when the run waits for a larger budget. */
export type OnBudget = (handle: WorkflowHandle, status: RunStatus) => Promise<void>;

export type KeysRun = Omit<Wanted, 'config'> & {
  readonly runId: string;
  readonly keys: Keys;
  readonly faults?: Faults;
  readonly onBudget?: OnBudget;
};

/** The whole product, with a listener between worker and trainer. One run at a time. */
export class KeysSetting implements AsyncDisposable {
  readonly product: Product;
  readonly #proxy: AlteringProxy;
  readonly #worker: AsyncDisposable;
  readonly #weightsOf = new Map<string, string>();

  private constructor(product: Product, proxy: AlteringProxy, worker: AsyncDisposable) {
    this.product = product;
    this.#proxy = proxy;
    this.#worker = worker;
  }

  static async make(): Promise<KeysSetting> {
    Runtime.install({ logger: new DefaultLogger('ERROR') });
    const product = await startProduct({ workers: [] });
    const proxy = await AlteringProxy.start(String(product.stack.trainerUrl));
    return new KeysSetting(product, proxy, await startWorkerHere(product, { trainerUrl: proxy.url }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker[Symbol.asyncDispose]();
    await this.#proxy[Symbol.asyncDispose]();
    await this.product[Symbol.asyncDispose]();
  }

  /** Runs to the end, answering what a run asks on the way: a teacher that is not better is fine here. */
  async run({ runId, keys, faults = {}, onBudget, ...tasks }: KeysRun): Promise<Observed> {
    const traffic = this.#listen(faults);
    const handle = await startRun(this.product, { config: configWith(keys), ...tasks }, runId);
    const result = await answered(handle, onBudget);
    const status = await handle.query<RunStatus>('status');
    const folder = join(PROJECT_ROOT, runDirOf(runId));
    const read = (name: string) => readFileSync(join(folder, name), 'utf8');
    const rows = read('metrics.jsonl')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as MetricsRow);
    const played = (child: string) => playedTrials(this.product.link.client, `${runId}.${child}`);
    const steps = await Promise.all(rows.map(({ step }) => played(stepName(step))));
    const measured = result.evaluations.filter(({ source }) => source === 'measured');
    const evaluations = await Promise.all(measured.map(({ label }) => played(`eval-${label}`)));
    return { result, status, rows, files: readdirSync(folder), read, traffic, steps, evaluations };
  }

  /** Runs what must fail, and returns how. */
  async failure({ runId, keys, ...tasks }: Omit<KeysRun, 'faults' | 'onBudget'>): Promise<{ type?: string; message: string }> {
    this.#listen({});
    const handle = await startRun(this.product, { config: configWith(keys), ...tasks }, runId);
    return handle.result().then(
      () => ({ message: 'the run did not fail' }),
      (error: { cause?: { type?: string; message: string } }) => error.cause ?? { message: String(error) },
    );
  }

  #listen(faults: Faults): Traffic {
    const traffic = new Traffic(this.#weightsOf);
    this.#proxy.heal();
    this.#proxy.faults = faults;
    this.#proxy.onExchange = (exchange) => traffic.hear(exchange);
    return traffic;
  }
}

/** The result of a run, whose questions about the teacher and the budget are answered on the way. */
export async function answered(handle: WorkflowHandle, onBudget?: OnBudget): Promise<RunResult> {
  let isOver = false;
  const ended = handle.result().finally(() => {
    isOver = true;
  });
  ended.catch(() => {});
  while (!isOver) {
    const status = await handle.query<RunStatus>('status');
    if (status.waitingFor?.kind === 'teacher') await handle.executeUpdate('continueAnyway', { args: [{ by: 'the test' }] });
    if (status.waitingFor?.kind === 'budget') await onBudget?.(handle, status);
    await Promise.race([ended.catch(() => {}), sleep(100)]);
  }
  return (await ended) as RunResult;
}

/** Ids of the quickstart's tasks of one kind, by the form of their ids. */
export function quickTasks(split: 'train' | 'holdout', form: RegExp, count: number): readonly string[] {
  const { trainIds, holdoutIds } = generateQuickstart(join(PROJECT_ROOT, '.stillroom/quickstart'));
  const ids = (split === 'train' ? trainIds : holdoutIds).filter((id) => form.test(id)).slice(0, count);
  if (ids.length < count) throw new Error(`the quickstart has ${ids.length} ${split} tasks like ${form}, not ${count}`);
  return ids;
}
