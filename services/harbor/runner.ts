import { mkdir } from 'node:fs/promises';
import { TrialCrashed, TrialRefused } from './errors.ts';
import { RunnerProcess, type RunnerProcessOptions, type TrialMessage } from './runner-process.ts';
import { sweepSandboxes } from './sweep.ts';
import type { TrialConfig } from './trial-config.ts';
import { readTrialFiles } from './trial-files.ts';
import { readTrial, type TrialOutcome, type TrialReading } from './trial-result.ts';

/** A worker that is told to end is killed some seconds after its trials were handed over. */
const CLOSE_GRACE_MS = 5_000;

export type RunTrialOptions = TrialReading & {
  /** Values the agent reads in memory, e.g. `STILLROOM_GATEWAY_KEY`; they are never written to a file. */
  readonly secrets?: Readonly<Record<string, string>>;
  /**
   * `http://HOST:PORT`: the only place that an agent's program in a sandbox without network may connect to, as 127.0.0.1:PORT, while the
   * agent runs. Absent: nowhere.
   */
  readonly gatewayUrl?: string;
  /** Aborting cancels the trial; `run` rejects with the signal's reason once the sandbox is gone. */
  readonly signal?: AbortSignal;
  /** harbor's TrialEvents: start, environment-start, agent-start, agent-end, verification-start, end, cancel. */
  readonly onEvent?: (event: string) => void;
};

/** A trial's outcome and the folder that holds its files (result.json, trial.log, agent/, verifier/). */
export type TrialRun = TrialOutcome & { readonly trialDir: string };

type Waiting = { onMessage(message: TrialMessage): void; onDeath(error: Error): void };

/** Runs harbor trials, many at a time, in one resident Python process, which is started again when it dies. */
export class HarborRunner implements AsyncDisposable {
  #options: RunnerProcessOptions;
  #waiting = new Map<string, Waiting>();
  #process: Promise<RunnerProcess> | null = null;
  #count = 0;
  #closed = false;

  private constructor(options: RunnerProcessOptions) {
    this.#options = options;
  }

  /** Starts the Python process. Throws `RunnerDied` with its words if it does not come up. */
  static async start(options: RunnerProcessOptions): Promise<HarborRunner> {
    await mkdir(options.home, { recursive: true });
    const runner = new HarborRunner(options);
    await runner.#live();
    return runner;
  }

  /**
   * Runs one trial to its end. Whatever harbor records as the trial's own failure is an outcome (`infraFailed`), not an error.
   * Throws `TrialRefused` (wrong input), `TrialCrashed` (no readable result), `RunnerDied`, or the signal's reason.
   */
  async run(config: TrialConfig, options: RunTrialOptions): Promise<TrialRun> {
    options.signal?.throwIfAborted();
    const process = await this.#live();
    options.signal?.throwIfAborted();
    this.#count += 1;
    const id = `${config.trial_name}#${this.#count}`;
    const cancel = () => process.send({ op: 'cancel', id });
    try {
      const trialDir = await new Promise<string>((resolve, reject) => {
        this.#waiting.set(id, waitingFor(options, resolve, reject));
        if (!process.alive) return reject(process.death());
        options.signal?.addEventListener('abort', cancel);
        const { secrets = {}, gatewayUrl: gateway = null } = options;
        process.send({ op: 'run', id, config, secrets, gateway, events: options.onEvent !== undefined });
      });
      return { ...readTrial(await readTrialFiles(trialDir), options), trialDir };
    } finally {
      this.#waiting.delete(id);
      options.signal?.removeEventListener('abort', cancel);
    }
  }

  /** The process id of the running Python process. */
  async pid(): Promise<number> {
    return (await this.#live()).pid;
  }

  /** Cancels what runs, waits until its sandboxes are gone and ends the process. */
  async close(): Promise<void> {
    this.#closed = true;
    const process = await this.#process?.catch(() => null);
    await process?.close(CLOSE_GRACE_MS);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The living process; callers that come while it starts share the one start. */
  #live(): Promise<RunnerProcess> {
    if (this.#closed) throw new Error('the harbor runner is closed');
    if (this.#process === null) {
      const starting = RunnerProcess.start(this.#options, (message) => this.#deliver(message));
      this.#process = starting;
      const forget = () => {
        if (this.#process === starting) this.#process = null;
      };
      starting.then((process) => process.exited.then(() => this.#bury(process, forget)), forget);
    }
    return this.#process;
  }

  #bury(process: RunnerProcess, forget: () => void): void {
    forget();
    // All of them ran in this process: a new one is only started by a later call.
    for (const trial of [...this.#waiting.values()]) trial.onDeath(process.death());
    // One that was killed could not clear up; whether a later call comes, nobody knows.
    if (!this.#closed) void sweepSandboxes(this.#options);
  }

  #deliver(message: TrialMessage): void {
    if (message.id !== null) this.#waiting.get(message.id)?.onMessage(message);
  }
}

function waitingFor(options: RunTrialOptions, resolve: (trialDir: string) => void, reject: (error: unknown) => void): Waiting {
  return {
    onDeath: reject,
    onMessage(message) {
      if (message.type === 'event') return options.onEvent?.(message.event);
      if (options.signal?.aborted) return reject(options.signal.reason);
      if (message.type === 'done' && !message.cancelled) return resolve(message.trialDir);
      if (message.type === 'done') return reject(new TrialCrashed('the harbor runner cancelled the trial because it was told to end'));
      if (message.kind === 'bad-request' || message.kind === 'bad-trial') return reject(new TrialRefused(message.error));
      reject(new TrialCrashed(message.error));
    },
  };
}
