import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { endWithParent } from '../../services/processes/index.ts';
import { PROJECT_ROOT, readEnvironment } from '../../services/settings/index.ts';
import type { Console } from '../console.ts';
import { ROLES, workerRoles } from '../input/roles.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean; readonly roles?: string };

export function addWorker(program: Command): void {
  addCommand(program, 'worker', 'run one more worker for the Temporal server that the environment names')
    .option('--roles <list>', `what it does: ${ROLES.join(',')}; default: all`, workerRoles)
    .action(run<Options, []>(runWorker));
}

/** Runs the worker in our place; it gets our signals and ends when we end. Its ready line is on stdout, its log on stderr. */
async function runWorker(console: Console, { roles }: Options): Promise<number> {
  const { python, sandbox } = readEnvironment();
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'worker.ts'), ...(roles === undefined ? [] : ['--roles', roles])], {
    cwd: PROJECT_ROOT,
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { ...process.env, STILLROOM_PYTHON: python, STILLROOM_SANDBOX: sandbox, STILLROOM_PARENT_FD: '0' },
  });
  endWithParent(() => child.kill('SIGTERM'));
  // At a terminal, Ctrl-C reaches the worker by itself: passing it on would make it two.
  const passOn = (signal: NodeJS.Signals) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, passOn);
  if (console.interactive) console.remark('worker starting; Ctrl-C stops it after what it does now');
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return signal === null ? (code ?? 1) : 128 + constants.signals[signal];
}
