import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { z } from 'zod';
import { RunnerDied } from './errors.ts';
import { redactor } from './redaction.ts';

const STDERR_LINES_KEPT = 30;
const SILENCE_LIMIT_MS = 30_000;
/** A runner is pinged this many times within the limit. */
const PINGS = 10;

const Peak = z.number().nullable();

/** What the Python runner prints, one JSON object a line; see `stillroom_harbor/runner.py`. */
const Message = z.discriminatedUnion('type', [
  z.object({ type: z.literal('ready'), pid: z.int(), harborVersion: z.string() }),
  /** For each trial that runs, the most memory that its sandbox was seen to use, in bytes; trials elsewhere are not in it. */
  z.object({ type: z.literal('pong'), memory: z.record(z.string(), z.number()) }),
  z.object({ type: z.literal('event'), id: z.string(), event: z.string() }),
  z.object({ type: z.literal('blocked'), id: z.string(), where: z.string() }),
  z.object({ type: z.literal('done'), id: z.string(), trialDir: z.string(), cancelled: z.boolean(), peakMemoryBytes: Peak }),
  z.object({
    type: z.literal('failed'),
    id: z.string().nullable(),
    kind: z.enum(['bad-request', 'bad-trial', 'cancelled', 'crashed']),
    error: z.string(),
    peakMemoryBytes: Peak,
  }),
]);
export type RunnerMessage = z.infer<typeof Message>;
export type TrialMessage = Exclude<RunnerMessage, { type: 'ready' | 'pong' }> | { type: 'memory'; id: string; bytes: number };

export type RunnerProcessOptions = {
  /** A Python that has harbor and (on Linux) bubblewrap. */
  readonly python: string;
  /** The folder that holds the `stillroom_harbor` package. */
  readonly pluginDir: string;
  /** Where users keep agents of their own, as Python modules; it need not be there. */
  readonly agentsDir?: string;
  /** A private HOME: harbor keeps caches there that processes must not share. */
  readonly home: string;
  /** Where sandboxes live; default: /dev/shm if there is one with room, else the temp directory. */
  readonly sandboxRoot?: string;
  /** More variables for the runner and the agents in it. The parent's own environment is not passed on. */
  readonly env?: Readonly<Record<string, string>>;
  /** Values in `env` that must not be read in any message or outcome. */
  readonly secrets?: readonly string[];
  /** The runner's stderr, line by line. */
  readonly onLog?: (line: string) => void;
  /** Time to import harbor and say `ready`; default 120 s (1-10 s on an idle or busy machine). */
  readonly startTimeoutMs?: number;
  /** A runner that answers nothing for so long is killed; default 30 s, more than a busy one ever needs. */
  readonly silenceLimitMs?: number;
};

/** One life of the Python runner: a line protocol over its stdin and stdout. It ends itself when its stdin does. */
export class RunnerProcess {
  readonly pid: number;
  readonly exited: Promise<void>;
  #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #alive = true;
  #log: string[] = [];
  /** Pings since its last word. */
  #unanswered = 0;

  private constructor(child: ChildProcessByStdio<Writable, Readable, Readable>, pid: number, onExit: Promise<void>) {
    this.#child = child;
    this.pid = pid;
    this.exited = onExit.then(() => {
      this.#alive = false;
    });
  }

  /** Starts a runner and waits for its `ready`. Throws `RunnerDied` with the end of its stderr if it does not come up. */
  static async start(options: RunnerProcessOptions, onMessage: (message: TrialMessage) => void): Promise<RunnerProcess> {
    const child = spawn(options.python, ['-m', 'stillroom_harbor.runner'], {
      // A group of its own: Ctrl-C at the terminal reaches us alone, and we end the trials in order.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
      env: runnerEnv(options),
    });
    const failed = once(child, 'error').then(
      ([error]) => new RunnerDied(`${options.python} cannot be started: ${(error as Error).message}`),
    );
    child.stdin.on('error', () => {}); // EPIPE: the exit says it
    if (child.pid === undefined) throw await failed;
    const exit = new Promise<void>((resolve) => child.once('close', () => resolve()));
    const runner = new RunnerProcess(child, child.pid, exit);
    const ready = new Promise<void>((resolve) => runner.#listen(options, onMessage, resolve));
    const limitMs = options.startTimeoutMs ?? 120_000;
    let fault = 'ended before it was ready';
    const timer = setTimeout(() => {
      fault = `was not ready within ${limitMs / 1000} s`;
      child.kill('SIGKILL');
    }, limitMs);
    try {
      const died = runner.exited.then(() => {
        throw runner.death(fault);
      });
      await Promise.race([ready, died]);
    } finally {
      clearTimeout(timer);
    }
    runner.#watch(options.silenceLimitMs ?? SILENCE_LIMIT_MS);
    return runner;
  }

  get alive(): boolean {
    return this.#alive;
  }

  send(request: object): void {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
  }

  /** The error for whoever waited for this process. */
  death(what = 'ended'): RunnerDied {
    const { exitCode, signalCode } = this.#child;
    const how = exitCode === null && signalCode === null ? '' : ` (${signalCode ?? `exit code ${exitCode}`})`;
    // The last line first: who shows the beginning of it alone shows the cause.
    const last = this.#log.findLast((line) => line.trim() !== '');
    const said = this.#log.length > 1 ? `\nIts last lines:\n${this.#log.join('\n')}` : '';
    return new RunnerDied(`the harbor runner ${what}${how}${last === undefined ? '' : `: ${last}`}${said}`);
  }

  /** Ends the runner: it cancels its trials, removes their sandboxes and exits; it is killed if that takes longer than `graceMs`. */
  async close(graceMs: number): Promise<void> {
    if (!this.#alive) return;
    this.#child.stdin.end();
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), graceMs);
    await this.exited;
    clearTimeout(timer);
  }

  /**
   * Kills a runner that has gone silent (stopped, or stuck): its trials would never end. Time is counted in our own pings, so that after a
   * pause of this very process the runner's answers are heard first.
   */
  #watch(limitMs: number): void {
    const timer = setInterval(() => {
      if (this.#unanswered++ < PINGS) return this.send({ op: 'ping' });
      this.#log.push(`it was killed because it had not answered for ${limitMs / 1000} s`);
      this.#child.kill('SIGKILL');
    }, limitMs / PINGS);
    timer.unref();
    void this.exited.then(() => clearInterval(timer));
  }

  #listen({ onLog, secrets = [] }: RunnerProcessOptions, onMessage: (message: TrialMessage) => void, onReady: () => void): void {
    const redact = redactor(secrets);
    createInterface({ input: this.#child.stderr }).on('line', (said) => {
      const line = redact.text(said);
      this.#log.push(line);
      if (this.#log.length > STDERR_LINES_KEPT) this.#log.shift();
      onLog?.(line);
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      const message = Message.safeParse(parseLine(line));
      // Said by a thread of its own, while the rest stands still.
      if (message.data?.type !== 'blocked') this.#unanswered = 0;
      if (!message.success) onLog?.(`unreadable line from the harbor runner: ${line.slice(0, 200)}`);
      else if (message.data.type === 'ready') onReady();
      else if (message.data.type !== 'pong') onMessage(message.data);
      else for (const [id, bytes] of Object.entries(message.data.memory)) onMessage({ type: 'memory', id, bytes });
    });
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return null;
  }
}

export function runnerEnv({ home, pluginDir, agentsDir, sandboxRoot, env, silenceLimitMs }: RunnerProcessOptions): Record<string, string> {
  return {
    PATH: process.env.PATH ?? '/usr/bin:/bin',
    LANG: 'C.UTF-8',
    HOME: home,
    PYTHONPATH: [pluginDir, ...(agentsDir === undefined ? [] : [agentsDir])].join(delimiter),
    PYTHONUNBUFFERED: '1',
    HARBOR_TELEMETRY: '0',
    LITELLM_LOCAL_MODEL_COST_MAP: 'True',
    // Its own remedy comes before ours.
    STILLROOM_BLOCKED_SEC: `${((silenceLimitMs ?? SILENCE_LIMIT_MS) * 0.6) / 1000}`,
    ...(process.env.TMPDIR === undefined ? {} : { TMPDIR: process.env.TMPDIR }),
    ...(sandboxRoot === undefined ? {} : { STILLROOM_SANDBOX_ROOT: sandboxRoot }),
    ...env,
  };
}
