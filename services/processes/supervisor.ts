import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from './child.ts';
import { ProcessLog } from './process-log.ts';
import type { Notice, ProcessSpec } from './spec.ts';

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 10_000;
/** A process that served this long is healthy: its next death starts the delays anew. */
const HEALTHY_MS = 30_000;
const TAIL_LINES = 12;

/** A process that did not come up the first time: its configuration is wrong, so it is not tried again. */
export class ProcessFailed extends Error {
  constructor(problem: string, log: ProcessLog) {
    super(`${problem}\n${log.tail(TAIL_LINES).replace(/^/gm, '  ')}\nThe whole log: ${log.file}`);
    this.name = 'ProcessFailed';
  }
}

/** A running process as its owner sees it, over all its lives. */
export type Supervised = {
  readonly name: string;
  readonly logFile: string;
  /** Pid of the command that runs now; undefined while there is none. */
  readonly pid: number | undefined;
  /** How often it was started again. */
  readonly restarts: number;
  /** The stdout line that said it was ready, of its present life ('' for other kinds of readiness). */
  readonly readyLine: string;
};

/**
 * Keeps processes running: starts each, waits until it serves, starts it again with growing delays when it dies, and stops all of them in
 * the reverse order of their start. None outlives us, not even when we are killed (see `ProcessSpec.leash`).
 */
export class Supervisor implements AsyncDisposable {
  private readonly logDir: string;
  private readonly onNotice: (notice: Notice) => void;
  private readonly kept: KeptProcess[] = [];

  constructor(options: { logDir: string; onNotice: (notice: Notice) => void }) {
    this.logDir = options.logDir;
    this.onNotice = options.onNotice;
  }

  /** Starts a process and resolves when it is ready. Rejects with ProcessFailed, and stops it, when it does not come up. */
  async start(spec: ProcessSpec): Promise<Supervised> {
    if (this.kept.some(({ name }) => name === spec.name)) throw new Error(`a process named ${spec.name} is already supervised`);
    const process = new KeptProcess(spec, this.logDir, this.onNotice);
    this.kept.push(process);
    await process.firstStart();
    return process;
  }

  /** Stops everything, the last started first. May be called more than once. */
  async stop(): Promise<void> {
    for (const process of [...this.kept].reverse()) await process.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

class KeptProcess implements Supervised {
  restarts = 0;
  readyLine = '';
  private readonly spec: ProcessSpec;
  private readonly log: ProcessLog;
  private readonly onNotice: (notice: Notice) => void;
  private readonly stopping = new AbortController();
  private child: Child | undefined;
  private keeping: Promise<void> = Promise.resolve();
  private stopped: Promise<void> | undefined;

  constructor(spec: ProcessSpec, logDir: string, onNotice: (notice: Notice) => void) {
    this.spec = spec;
    this.log = new ProcessLog(logDir, spec.name);
    this.onNotice = onNotice;
  }

  get name(): string {
    return this.spec.name;
  }

  get logFile(): string {
    return this.log.file;
  }

  get pid(): number | undefined {
    return this.child?.pid;
  }

  async firstStart(): Promise<void> {
    const child = this.spawn();
    try {
      this.readyLine = await child.ready();
    } catch (error) {
      await child.stop();
      throw new ProcessFailed((error as Error).message, this.log);
    }
    this.keeping = this.keep(child);
  }

  stop(): Promise<void> {
    this.stopped ??= this.stopOnce();
    return this.stopped;
  }

  private async stopOnce(): Promise<void> {
    this.stopping.abort();
    await this.child?.stop();
    await this.keeping;
    this.log.close();
  }

  private spawn(): Child {
    this.log.write(`--- ${this.name} starts: ${[this.spec.command, ...this.spec.args].join(' ')}\n`);
    this.child = new Child(this.spec, this.log);
    return this.child;
  }

  /** Waits for each death and starts the next life, until we are stopped. */
  private async keep(first: Child): Promise<void> {
    let delayMs = FIRST_DELAY_MS;
    for (let child = first, servingSince = performance.now(); ; ) {
      const ending = await child.ended;
      if (this.stopping.signal.aborted) return;
      if (performance.now() - servingSince > HEALTHY_MS) delayMs = FIRST_DELAY_MS;
      this.tell('died', `${this.name} ended (${ending}); starting it again`);
      await sleep(delayMs, undefined, { signal: this.stopping.signal }).catch(() => {});
      if (this.stopping.signal.aborted) return;
      delayMs = Math.min(delayMs * 2, MAX_DELAY_MS);
      child = this.spawn();
      this.restarts++;
      servingSince = performance.now();
      await this.becomeReady(child);
    }
  }

  private async becomeReady(child: Child): Promise<void> {
    try {
      this.readyLine = await child.ready();
      this.tell('restarted', `${this.name} is running again`);
    } catch (error) {
      if (!this.stopping.signal.aborted) this.tell('failed', `${(error as Error).message}; log: ${this.logFile}`);
      await child.stop();
    }
  }

  private tell(kind: Notice['kind'], line: string): void {
    this.onNotice({ process: this.name, kind, line });
  }
}
