import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaNode } from 'execa';
import { generateQuickstart } from '../../examples/quickstart/generate.ts';
import { PROJECT_ROOT, readEnvironment } from '../../services/settings/index.ts';

/** What a worker needs of the project. */
const PARTS = [
  'activities',
  'core',
  'services',
  'workflows',
  'harbor_plugin',
  'examples',
  'worker.ts',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
];
const READY = '"ready":true';

/** A worker with a project root of its own, as on another machine: it shares nothing with others but what `settings` and `env` name. */
export type Machine = AsyncDisposable & {
  readonly root: string;
  /** Of the worker process; Temporal's identity of a worker begins with it. */
  readonly pid: number;
  /** What a file below the root says; null where there is none. */
  read(path: string): string | null;
};

export async function startMachine(settings: object, env: Readonly<Record<string, string>>): Promise<Machine> {
  const root = mkdtempSync(join(tmpdir(), 'stillroom-machine-'));
  for (const part of PARTS) cpSync(join(PROJECT_ROOT, part), join(root, part), { recursive: true });
  symlinkSync(join(PROJECT_ROOT, 'node_modules'), join(root, 'node_modules'));
  mkdirSync(join(root, '.stillroom'));
  writeFileSync(join(root, 'temporal.config.json'), JSON.stringify(settings));
  generateQuickstart(join(root, '.stillroom/quickstart'));
  const { python, sandbox } = readEnvironment();
  const worker = execaNode(join(root, 'worker.ts'), [], {
    cwd: root,
    env: { ...env, STILLROOM_PYTHON: python, STILLROOM_SANDBOX: sandbox },
    reject: false,
    all: true,
    forceKillAfterDelay: 15_000,
  });
  const said: string[] = [];
  const ready = new Promise<void>((resolve) => {
    worker.all.on('data', (chunk) => {
      said.push(String(chunk));
      if (said.join('').includes(READY)) resolve();
    });
  });
  const ended = worker.then(() => {
    throw new Error(`the worker ended:\n${said.join('')}`);
  });
  await Promise.race([ready, ended]);
  ended.catch(() => {}); // it is asked to end later
  return {
    root,
    pid: worker.pid as number,
    read: (path) => (existsSync(join(root, path)) ? readFileSync(join(root, path), 'utf8') : null),
    [Symbol.asyncDispose]: async () => {
      worker.kill('SIGTERM');
      await worker;
      rmSync(root, { recursive: true, force: true });
    },
  };
}
