import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { PARENT_FD_VARIABLE } from './parent-watch.ts';
import { answers } from './ports.ts';
import type { ProcessLog } from './process-log.ts';
import type { ProcessSpec } from './spec.ts';

const LEASH = path.join(import.meta.dirname, 'leash.mjs');
const POLL_MS = 100;
const DEFAULT_GRACE_MS = 10_000;
/** How long the last output may take to arrive after the end: a descendant that left the group may hold the pipe open for ever. */
const LAST_OUTPUT_MS = 500;
/** How long killed descendants may take to be gone; in a container whose first process reaps nobody, they never are. */
const GROUP_END_MS = 2_000;

/** The way a process ended, in words: `exit code 1` or `SIGKILL`. */
export type Ending = string;

/**
 * One life of one process, in a process group of its own, so that a Ctrl-C at the terminal does not reach it and its end takes all its
 * own children along. Stdin is a pipe that closes when we end.
 */
export class Child {
  /** Settles when the process and its group are gone; never rejects. */
  readonly ended: Promise<Ending>;
  private readonly spec: ProcessSpec;
  private readonly process: ChildProcess;
  private commandPid: number | undefined;
  private matched: (line: string) => void = () => {};
  private readonly line: Promise<string>;

  constructor(spec: ProcessSpec, log: ProcessLog) {
    this.spec = spec;
    const wrapped = spec.leash === 'wrapper';
    this.process = spawn(wrapped ? process.execPath : spec.command, wrapped ? [LEASH, spec.command, ...spec.args] : [...spec.args], {
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      env: { ...process.env, ...spec.env, ...(wrapped ? { STILLROOM_LEASH_PID_FD: '3' } : { [PARENT_FD_VARIABLE]: '0' }) },
      stdio: ['pipe', 'pipe', 'pipe', ...(wrapped ? (['pipe'] as const) : [])],
      detached: true,
    });
    this.line = new Promise((resolve) => {
      this.matched = resolve;
    });
    this.ended = this.watchEnd(log);
    this.process.stdin?.on('error', () => {}); // a pipe to a process that just died
    this.watchOutput(log);
  }

  /** Pid of the command itself, not of its leash; undefined until known. */
  get pid(): number | undefined {
    return this.spec.leash === 'wrapper' ? this.commandPid : this.process.pid;
  }

  /** Resolves when the process serves; the matched line for `line`, else ''. Rejects when it ends first or takes too long. */
  async ready(): Promise<string> {
    const timeout = AbortSignal.timeout(this.spec.readyTimeoutMs);
    const tooLate = once(timeout, 'abort').then(() => {
      throw new Error(`${this.spec.name} was not ready within ${this.spec.readyTimeoutMs / 1000} s`);
    });
    const tooEarly = this.ended.then((ending) => {
      throw new Error(`${this.spec.name} ended before it was ready (${ending})`);
    });
    const done = new AbortController();
    try {
      return await Promise.race([this.serves(AbortSignal.any([timeout, done.signal])), tooLate, tooEarly]);
    } finally {
      done.abort();
      tooLate.catch(() => {});
      tooEarly.catch(() => {});
    }
  }

  /** Ends it: SIGTERM, after the grace time SIGKILL for the whole group. Resolves when it is gone. */
  async stop(): Promise<void> {
    this.process.kill('SIGTERM');
    const grace = new AbortController();
    const late = sleep(this.spec.stopGraceMs ?? DEFAULT_GRACE_MS, undefined, { signal: grace.signal }).then(
      () => void this.killGroup(),
      () => {},
    );
    await this.ended;
    grace.abort();
    await late;
  }

  private async serves(signal: AbortSignal): Promise<string> {
    const { ready } = this.spec;
    if (ready.kind === 'line') return this.line;
    while (!signal.aborted) {
      const serving = ready.kind === 'tcp' ? await answers(ready.port) : await ready.isReady(signal).catch(() => false);
      if (serving) break;
      await sleep(POLL_MS);
    }
    return '';
  }

  private async watchEnd(log: ProcessLog): Promise<Ending> {
    let closed = false;
    this.process.once('close', () => {
      closed = true;
    });
    const ending = await new Promise<Ending>((resolve) => {
      this.process.once('error', (error) => resolve(error.message));
      this.process.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    await this.endGroup();
    if (!closed) await Promise.race([once(this.process, 'close'), sleep(LAST_OUTPUT_MS)]);
    log.write(`--- ${this.spec.name} ended: ${ending}\n`);
    return ending;
  }

  private watchOutput(log: ProcessLog): void {
    const { stdout, stderr } = this.process;
    if (stdout === null || stderr === null) return; // could not be started; watchEnd says so
    for (const stream of [stdout, stderr]) stream.on('data', (chunk: Buffer) => log.write(chunk));
    const { ready } = this.spec;
    if (ready.kind === 'line') createInterface({ input: stdout }).on('line', (line) => ready.pattern.test(line) && this.matched(line));
    const pidPipe = this.process.stdio[3] as Readable | undefined;
    pidPipe?.on('data', (chunk: Buffer) => {
      this.commandPid = Number(chunk.toString());
    });
  }

  /** Whatever the process had started must not live on beside its successor. */
  private async endGroup(): Promise<void> {
    const deadline = performance.now() + GROUP_END_MS;
    while (this.killGroup() && performance.now() < deadline) await sleep(10);
  }

  /** Kills all members of the group; false when there are none. */
  private killGroup(): boolean {
    if (this.process.pid === undefined) return false;
    try {
      return process.kill(-this.process.pid, 'SIGKILL');
    } catch (error) {
      // EPERM is macOS's answer for a group in which only ended processes are left.
      if (['ESRCH', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  }
}
