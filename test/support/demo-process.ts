import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { execa } from 'execa';
import { PROJECT_ROOT, readEnvironment } from '../../services/settings/index.ts';

/** How long one demo of a test may take, on a busy machine. */
const LIMIT_MS = 180_000;

function spawnDemo(args: readonly string[]) {
  const { node, sandbox } = readEnvironment();
  const env = { STILLROOM_SANDBOX: sandbox, NO_COLOR: '1' };
  const cli = join(PROJECT_ROOT, 'client', 'cli.ts');
  return execa(node, [cli, 'demo', ...args], { all: true, reject: false, stdin: 'ignore', timeout: LIMIT_MS, env });
}

/** `stillroom demo` as a process of its own, as a person starts it, and what it has printed so far. */
export class DemoProcess implements AsyncDisposable {
  /** Everything it printed, on both streams. */
  text = '';
  private readonly process: ReturnType<typeof spawnDemo>;

  constructor(args: readonly string[]) {
    this.process = spawnDemo(args);
    this.process.all.setEncoding('utf8').on('data', (chunk: string) => {
      this.text += chunk;
    });
  }

  get pid(): number {
    const { pid } = this.process;
    if (pid === undefined) throw new Error('the demo could not be started');
    return pid;
  }

  /** Waits until it has printed `pattern` and returns the pattern's first group. Fails when it ends without. */
  async says(pattern: RegExp): Promise<string> {
    const ended = this.process.then(() => true);
    for (let last = false; ; last = await Promise.race([ended, sleep(50, false)])) {
      const found = pattern.exec(this.text);
      if (found) return found[1] ?? found[0];
      if (last) throw new Error(`the demo ended without saying ${pattern}:\n${this.text}`);
    }
  }

  /** What Ctrl-C does. */
  interrupt(): void {
    process.kill(this.pid, 'SIGINT');
  }

  /** Its exit code, when it has ended. */
  async exitCode(): Promise<number | undefined> {
    return (await this.process).exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.process.exitCode === null) this.process.kill('SIGTERM');
    await this.process;
  }
}
