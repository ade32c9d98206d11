import { mkdir } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TrialLimits } from '../../core/run/trial-time.ts';
import { redactor } from './redaction.ts';
import { RunnerProcess, type RunnerProcessOptions, type TrialMessage } from './runner-process.ts';
import { sweepSandboxes } from './sweep.ts';
import type { TrialConfig } from './trial-config.ts';
import { readTrialFiles } from './trial-files.ts';
import { readTrial, type TrialOutcome, type TrialReading } from './trial-result.ts';
import { NO_LIMITS, TrialWatch } from './trial-watch.ts';
import { unlessAborted } from './unless-aborted.ts';
import { type TrialCaller, type WaitingTrial, waitingFor } from './waiting-trial.ts';

/** A worker that is told to end is killed some seconds after its trials were handed over. */
const CLOSE_GRACE_MS = 5_000;
/** A runner that died is started again at once; one that dies again and again without a trial that ended, after pauses that double. */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;

export type RunTrialOptions = TrialReading &
  TrialCaller & {
    /** Values the agent reads in memory, e.g. `STILLROOM_GATEWAY_KEY`; they are never written to a file. */
    readonly secrets?: Readonly<Record<string, string>>;
    /**
     * `http://HOST:PORT`: the only place that an agent's program in a sandbox without network may connect to, as 127.0.0.1:PORT, while the
     * agent runs. Absent: nowhere.
     */
    readonly gatewayUrl?: string;
    /** Ends a trial that does not end by itself. Default: it is waited for. */
    readonly limits?: TrialLimits;
  };

/** A trial's outcome and the folder that holds its files (result.json, trial.log, agent/, verifier/). */
export type TrialRun = TrialOutcome & { readonly trialDir: string };

/** Runs harbor trials, many at a time, in one resident Python process, which is started again when it dies. */
export class HarborRunner implements AsyncDisposable {
  #options: RunnerProcessOptions;
  #waiting = new Map<string, WaitingTrial>();
  #process: Promise<RunnerProcess> | null = null;
  /** Processes that take no more trials. */
  #retired = new Set<RunnerProcess>();
  #count = 0;
  #closing = new AbortController();
  /** Deaths in a row, failed starts included, with no trial that ended in between. */
  #deaths = 0;

  /** The Python process is started with the first trial. */
  constructor(options: RunnerProcessOptions) {
    this.#options = options;
  }

  /** Starts the Python process at once. Throws `RunnerDied` with its words if it does not come up. */
  static async start(options: RunnerProcessOptions): Promise<HarborRunner> {
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
    const process = await unlessAborted(this.#live(), options.signal);
    options.signal?.throwIfAborted();
    this.#count += 1;
    const id = `${config.trial_name}#${this.#count}`;
    using watches = new DisposableStack();
    watches.defer(() => this.#forget(id, process));
    const trialDir = await new Promise<string>((resolve, reject) => {
      const giveUp = (reason: unknown) => {
        this.#retire(process);
        reject(reason);
      };
      const watch = new TrialWatch(options.limits ?? NO_LIMITS, options.signal, {
        cancel: () => process.send({ op: 'cancel', id }),
        giveUp,
      });
      watches.defer(() => watch[Symbol.dispose]());
      this.#waiting.set(id, waitingFor(process, options, watch, resolve, reject));
      if (!process.alive) return reject(process.death());
      const { secrets = {}, gatewayUrl: gateway = null } = options;
      process.send({ op: 'run', id, config, secrets, gateway });
    });
    return { ...this.#unsecret(readTrial(await readTrialFiles(trialDir), options)), trialDir };
  }

  /** What a server or a tool said may hold a key that it was given. */
  #unsecret(outcome: TrialOutcome): TrialOutcome {
    const { exceptionMessage, infraReason } = outcome;
    const { text } = redactor(this.#options.secrets ?? []);
    return { ...outcome, exceptionMessage: exceptionMessage && text(exceptionMessage), infraReason: infraReason && text(infraReason) };
  }

  /** The process id of the running Python process. */
  async pid(): Promise<number> {
    return (await this.#live()).pid;
  }

  /** Cancels what runs, waits until its sandboxes are gone and ends the process. */
  async close(): Promise<void> {
    this.#closing.abort(new Error('the harbor runner is closed'));
    const process = await this.#process?.catch(() => null);
    await Promise.all([...this.#retired, process].map((one) => one?.close(CLOSE_GRACE_MS)));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** The living process; callers that come while it starts share the one start. */
  #live(): Promise<RunnerProcess> {
    this.#closing.signal.throwIfAborted();
    if (this.#process === null) {
      const starting = this.#start();
      this.#process = starting;
      const forget = () => {
        if (this.#process === starting) this.#process = null;
      };
      const failed = () => {
        this.#deaths += 1;
        forget();
      };
      starting.then((process) => process.exited.then(() => this.#bury(process, forget)), failed);
    }
    return this.#process;
  }

  async #start(): Promise<RunnerProcess> {
    const pauseMs = this.#deaths < 2 ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (this.#deaths - 2), LONGEST_PAUSE_MS);
    if (pauseMs > 0) await sleep(pauseMs, undefined, { signal: this.#closing.signal });
    await mkdir(this.#options.home, { recursive: true });
    return RunnerProcess.start(this.#options, (message) => this.#deliver(message));
  }

  /** A process in which something runs on that nobody waits for takes no more trials, and ends after those it has. */
  #retire(process: RunnerProcess): void {
    if (this.#retired.has(process)) return;
    this.#retired.add(process);
    this.#process = null;
  }

  #forget(id: string, process: RunnerProcess): void {
    this.#waiting.delete(id);
    const isBusy = [...this.#waiting.values()].some((trial) => trial.process === process);
    if (this.#retired.has(process) && !isBusy) void process.close(CLOSE_GRACE_MS);
  }

  #bury(process: RunnerProcess, forget: () => void): void {
    forget();
    if (!this.#retired.delete(process)) this.#deaths += 1;
    for (const trial of [...this.#waiting.values()]) if (trial.process === process) trial.onDeath(process.death());
    // One that was killed could not clear up; whether a later call comes, nobody knows.
    if (!this.#closing.signal.aborted) void sweepSandboxes(this.#options);
  }

  #deliver(message: TrialMessage): void {
    if (message.type === 'done' && !message.cancelled) this.#deaths = 0;
    if (message.id !== null) this.#waiting.get(message.id)?.onMessage(message);
  }
}
