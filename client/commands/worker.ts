import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { endWithParent } from '../../services/processes/index.ts';
import { ALL_ROLES, PROJECT_ROOT, ROLE_SYNTAX, readEnvironment } from '../../services/settings/index.ts';
import type { Console } from '../console.ts';
import { portNumber, wholeNumber } from '../input/number.ts';
import { workerRoles } from '../input/roles.ts';
import { addCommand, run } from './command.ts';

type Options = {
  readonly json?: boolean;
  readonly role: string;
  readonly slots?: number;
  readonly metricsPort?: number;
  readonly gatewayUrl?: string;
};

export function addWorker(program: Command): void {
  addCommand(program, 'worker', 'run one more worker for the Temporal server that the environment names')
    .option('--role <roles>', `what it does: ${ROLE_SYNTAX}`, workerRoles, ALL_ROLES)
    .option('--slots <n>', "how much of its one role it does at once; default: the settings'", wholeNumber(1))
    .option('--metrics-port <n>', "port for Prometheus to read; default: the settings', or none", portNumber)
    .option(
      '--gateway-url <url>',
      "where agents in remote sandboxes reach this worker's gateway; default: STILLROOM_GATEWAY_URL, or the settings'",
    )
    .action(run<Options, []>(runWorker));
}

/** Runs the worker in our place; it gets our signals and ends when we end. Its ready line is on stdout, its log on stderr. */
async function runWorker(console: Console, { role, slots, metricsPort, gatewayUrl }: Options): Promise<number> {
  const { python, sandbox } = readEnvironment();
  const flags = [
    ...['--role', role],
    ...flag('--slots', slots),
    ...flag('--metrics-port', metricsPort),
    ...flag('--gateway-url', gatewayUrl),
  ];
  const child = spawn(process.execPath, [join(PROJECT_ROOT, 'worker.ts'), ...flags], {
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
  if (console.interactive) console.remark('worker starting; Ctrl-C ends it after what it does now, a second one at once');
  const [code, signal] = (await once(child, 'exit')) as [number | null, NodeJS.Signals | null];
  return signal === null ? (code ?? 1) : 128 + constants.signals[signal];
}

const flag = (name: string, value: number | string | undefined) => (value === undefined ? [] : [name, `${value}`]);
