import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { PROJECT_ROOT, readEnvironment } from '../../services/settings/index.ts';

/** What a command printed, and whether it succeeded. */
export type Said = { readonly ok: boolean; readonly text: string; readonly errors: string };

/** How long a command may take. `temporal workflow result` waits for the run. */
const LIMIT_MS = 120_000;

/** A shell with nothing but the `temporal` CLI, pointed at one server; a profile or variables of the person at the machine do not count. */
export class TemporalShell implements Disposable {
  private readonly dir = mkdtempSync(join(tmpdir(), 'stillroom-cli-'));
  private readonly env: Readonly<Record<string, string | undefined>>;

  constructor(address: string) {
    const foreign = Object.keys(process.env).filter((name) => name.startsWith('TEMPORAL_'));
    this.env = {
      ...Object.fromEntries(foreign.map((name) => [name, undefined])),
      TEMPORAL_ADDRESS: address,
      TEMPORAL_CONFIG_FILE: join(this.dir, 'no-profiles.toml'),
      TEMPORAL_CLI: readEnvironment().temporal,
    };
  }

  /** Runs a command line as it stands in the docs; its `temporal` is the CLI that set-up found. */
  async run(commandLine: string): Promise<Said> {
    const script = `temporal() { "$TEMPORAL_CLI" "$@"; }\n${commandLine}`;
    const { exitCode, stdout, stderr } = await execa('sh', ['-c', script], {
      cwd: PROJECT_ROOT,
      env: this.env,
      stdin: 'ignore',
      reject: false,
      timeout: LIMIT_MS,
    });
    return { ok: exitCode === 0, text: stdout, errors: stderr };
  }

  /** Runs a command that must succeed. */
  async must(commandLine: string): Promise<string> {
    const { ok, text, errors } = await this.run(commandLine);
    if (!ok) throw new Error(`${commandLine}\nfailed:\n${errors}\n${text}`);
    return text;
  }

  /** The JSON that a command prints with `-o json`. */
  async json<T>(commandLine: string): Promise<T> {
    return JSON.parse(await this.must(`${commandLine} -o json`)) as T;
  }

  [Symbol.dispose](): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The commands of the README's walk-through, in order, each a whole command line. */
export function readmeCommands(): string[] {
  const readme = readFileSync(join(PROJECT_ROOT, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block]) => block ?? '');
  const walk = blocks.filter((block) => block.startsWith('temporal workflow start '));
  if (walk.length !== 1) throw new Error(`README.md has ${walk.length} blocks that start a run with \`temporal\`; one was expected`);
  return (walk[0] ?? '').split(/^(?=temporal )/m).map((command) => command.trim());
}
