import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { freePorts, LOOPBACK } from '../../services/processes/index.ts';
import { PROJECT_ROOT, readEnvironment } from '../../services/settings/index.ts';
import { descendants, type Process } from '../support/process-tree.ts';
import type { Target } from './schedule.ts';

export type UpOptions = {
  readonly stateDir: string;
  readonly workers: number;
  /** What the trainer that it starts is told, as variables. */
  readonly trainer: { readonly callLogFile: string; readonly faultsFile: string };
};

const START_LIMIT_MS = 180_000;

/** How the parts of `stillroom up` are known among its processes. A leash has its command in its own command line. */
const COMMANDS: Readonly<Record<Target, RegExp>> = {
  worker: /\/worker\.ts( |$)/,
  runner: /stillroom_harbor\.runner/,
  trainer: /\/trainer\/main\.ts( |$)/,
  temporal: / server start-dev /,
};
const LEASH = /leash\.mjs/;

/** `stillroom up` as a person runs it, in a process of its own. It ends with us. */
export class UpProcess {
  readonly address: string;
  private readonly process: ChildProcessByStdio<null, Readable, Readable>;

  private constructor(process: UpProcess['process'], address: string) {
    this.process = process;
    this.address = address;
  }

  /** Resolves when everything serves. @throws when it does not come up */
  static async start({ stateDir, workers, trainer }: UpOptions): Promise<UpProcess> {
    const [port, uiPort, trainerPort] = (await freePorts(3)) as [number, number, number];
    const cli = [join(PROJECT_ROOT, 'client', 'cli.ts'), 'up', '--json', '--workers', `${workers}`, '--state', stateDir];
    const ports = ['--port', `${port}`, '--ui-port', `${uiPort}`, '--trainer-port', `${trainerPort}`];
    const { node, sandbox } = readEnvironment();
    const child = spawn(node, [...cli, ...ports], {
      cwd: PROJECT_ROOT,
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      // A Ctrl-C at the terminal is ours: we end it in order.
      detached: true,
      env: {
        ...process.env,
        STILLROOM_PARENT_FD: '3',
        STILLROOM_SANDBOX: sandbox,
        STILLROOM_TRAINER_CALL_LOG: trainer.callLogFile,
        STILLROOM_TRAINER_FAULTS: trainer.faultsFile,
        TINKER_BASE_URL: undefined,
      },
    }) as unknown as UpProcess['process'];
    mkdirSync(stateDir, { recursive: true });
    child.stderr.pipe(createWriteStream(join(stateDir, 'up.log')));
    await ready(child);
    return new UpProcess(child, `${LOOPBACK}:${port}`);
  }

  get pid(): number {
    const { pid } = this.process;
    if (pid === undefined) throw new Error('`stillroom up` could not be started');
    return pid;
  }

  /** All processes of it now. */
  all(): Process[] {
    return descendants(this.pid);
  }

  /** The living processes of one part, in the order of their pids. */
  partsOf(target: Target, all: readonly Process[] = this.all()): Process[] {
    const parts = all.filter(({ command }) => COMMANDS[target].test(command) && !LEASH.test(command));
    // A part's own helpers may have its command line until they run their own program.
    return parts.filter(({ parentPid }) => !parts.some(({ pid }) => pid === parentPid));
  }

  /** Ends it as Ctrl-C does; resolves to its exit code when it has ended. */
  async interrupt(): Promise<number | null> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return this.process.exitCode;
    this.process.kill('SIGINT');
    const [code] = (await once(this.process, 'exit')) as [number | null];
    return code;
  }
}

/** Its one JSON value says that it serves. */
async function ready(child: UpProcess['process']): Promise<void> {
  const limit = AbortSignal.timeout(START_LIMIT_MS);
  const ended = once(child, 'exit', { signal: limit }).then(([code]) => {
    throw new Error(`\`stillroom up\` ended with code ${code} before it served; its folder has up.log and logs/`);
  });
  const said = (async () => {
    let text = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      text += chunk;
      if (/"ready":\s*true[\s\S]*^}/m.test(text)) return;
    }
    return ended;
  })();
  ended.catch(() => {});
  await Promise.race([said, ended]);
  child.stdout.resume();
}
