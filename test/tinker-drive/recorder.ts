import { setTimeout as sleep } from 'node:timers/promises';
import { NotRun } from './made.ts';
import type { ResultsFile } from './results-file.ts';

/** What one step brought; `s`: seconds that it took. */
export type StepRecord = { readonly step: string; readonly s: number; readonly result?: unknown; readonly error?: string };
export type DriveResults = { readonly sdk: string; readonly steps: readonly StepRecord[] };

export type RecorderOptions = {
  readonly sdk: string;
  /** Written whole after every step. */
  readonly out: ResultsFile;
  readonly skip: ReadonlySet<string>;
  /** For steps that name no time of their own. */
  readonly stepTimeoutMs: number;
  /** Asked when a step has failed: whether there is any point in the next one. */
  readonly isServiceThere: () => Promise<boolean>;
};

/** The service has gone; what it was asked until then is written. */
export class ServiceGone extends Error {
  readonly step: string;

  constructor(step: string) {
    super(`the service has given no sign of life since '${step}'`);
    this.name = 'ServiceGone';
    this.step = step;
  }
}

/** `value`: what later steps need; `result`: what is written. */
export type StepOutcome<T> = { readonly value: T; readonly result: unknown };

const LONGEST_ERROR_CHARS = 400;

/** What was aborted has so long to come to its end before the next step begins. */
const ABORT_GRACE_MS = 1000;

/** Does a step; `signal` is aborted when the step's time is over. */
export type Work<T> = (signal: AbortSignal) => Promise<StepOutcome<T>>;

/** Runs steps one after another. A step that fails or takes too long is recorded as such, and the next one runs if the service is there. */
export class Recorder {
  readonly #options: RecorderOptions;
  readonly #steps: StepRecord[] = [];

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  get results(): DriveResults {
    return { sdk: this.#options.sdk, steps: this.#steps };
  }

  /**
   * The step's value; null when it was skipped or failed.
   * @throws ServiceGone when it failed and the service is not there
   * @throws OutUnwritable when the results can no longer be written
   */
  async step<T>(name: string, work: Work<T>, timeoutMs = this.#options.stepTimeoutMs): Promise<T | null> {
    if (this.#options.skip.has(name)) return null;
    const startMs = performance.now();
    const ended = await within(timeoutMs, work).catch((error: unknown) => ({ error }));
    const s = Math.round((performance.now() - startMs) / 10) / 100;
    if (!('error' in ended)) {
      this.#add({ step: name, s, result: ended.result });
      return ended.value;
    }
    this.#add({ step: name, s, error: textOf(ended.error) });
    if (!(ended.error instanceof NotRun) && !(await this.#options.isServiceThere())) throw new ServiceGone(name);
    return null;
  }

  #add(record: StepRecord): void {
    this.#steps.push(record);
    console.log(`${record.step} ${record.error ?? 'ok'} ${record.s}`);
    this.#options.out.write(JSON.stringify(this.results, null, 0));
  }
}

const TIMEOUT = Symbol('timeout');

async function within<T>(timeoutMs: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(TIMEOUT), timeoutMs);
  const working = work(controller.signal);
  const tooLate = new Promise<never>((_, reject) => {
    const end = () => void Promise.race([working.catch(() => null), sleep(ABORT_GRACE_MS)]).then(() => reject(TIMEOUT));
    controller.signal.addEventListener('abort', end, { once: true });
  });
  try {
    const result = await Promise.race([working, tooLate]);
    controller.signal.throwIfAborted();
    return result;
  } catch (error) {
    throw controller.signal.aborted ? TIMEOUT : error;
  } finally {
    clearTimeout(timer);
  }
}

function textOf(error: unknown): string {
  if (error === TIMEOUT) return 'timeout';
  if (error instanceof NotRun) return error.message;
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.slice(0, LONGEST_ERROR_CHARS);
}
