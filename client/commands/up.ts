import { once } from 'node:events';
import type { Command } from 'commander';
import { endWithParent } from '../../services/processes/index.ts';
import { ROLE_SYNTAX, ROLES, type Role, readAppSettings, readEnvironment, rolesIn } from '../../services/settings/index.ts';
import { requireSettings } from '../../services/tinker/index.ts';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { CliError } from '../errors.ts';
import { EXIT } from '../exit-codes.ts';
import { wholeNumber } from '../input/number.ts';
import { workerRoles } from '../input/roles.ts';
import { isAbort, onInterrupt } from '../interrupt.ts';
import { type StackFlags, stackOptions } from '../stack/options.ts';
import { LOCAL_KEY } from '../stack/parts.ts';
import { type Stack, startStack } from '../stack/stack.ts';
import { endStack } from '../stack/stopping.ts';
import { addCommand, run } from './command.ts';
import { addStackFlags } from './stack-flags.ts';

type Options = StackFlags & {
  readonly json?: boolean;
  readonly trainer: boolean;
  readonly workers: number;
  readonly role?: readonly string[];
};

export function addUp(program: Command): void {
  const command = addCommand(program, 'up', 'start Temporal, the embedded trainer and workers here, until Ctrl-C');
  addStackFlags(command)
    .option('--no-trainer', 'use the training service that TINKER_BASE_URL and TINKER_API_KEY name')
    .option('--role <roles>', `a worker process and what it does: ${ROLE_SYNTAX}; may be repeated; default: the settings'`, addRoles)
    .option('--workers <n>', 'how many of each worker process', wholeNumber(0), 1)
    .action(run<Options, []>(up));
}

const addRoles = (text: string, before: readonly string[] = []) => [...before, workerRoles(text)];

async function up(console: Console, options: Options): Promise<number> {
  const embedded = options.trainer && !process.env.TINKER_BASE_URL;
  if (!embedded) requireService();
  const settings = readAppSettings();
  const workers = (options.role ?? settings.workers.processes).flatMap((roles) => Array<string>(options.workers).fill(roles));
  const given = stackOptions(options, settings, readEnvironment(), { trainer: embedded, workers });
  const interrupt = onInterrupt();
  endWithParent(() => process.emit('SIGTERM'));
  let stack: Stack | null = null;
  try {
    const onNotice = ({ line }: { line: string }) => console.remark(line);
    stack = await startStack(given, { onNotice, onStep: (text) => console.print(text), signal: interrupt.signal });
    announce(console, stack);
    for (const role of rolesMissingIn(workers))
      console.remark(`no worker here does ${role}: runs wait for \`${COMMAND} worker --role ${role}\``);
    if (!interrupt.signal.aborted) await once(interrupt.signal, 'abort');
    return EXIT.ok;
  } catch (error) {
    if (isAbort(error)) return EXIT.interrupted;
    throw error;
  } finally {
    if (stack) await endStack(stack, interrupt, (text) => console.print(text));
    interrupt.release();
  }
}

/** Roles that a run needs and none of these worker processes has. */
function rolesMissingIn(workers: readonly string[]): Role[] {
  const there = new Set(workers.flatMap((roles) => rolesIn(roles) ?? []));
  return ROLES.filter((role) => !there.has(role));
}

/** Before anything is started: workers without a service to reach would end again and again. */
function requireService(): void {
  try {
    requireSettings();
  } catch (error) {
    throw new CliError(`without the embedded trainer: ${(error as Error).message}`);
  }
}

function announce(console: Console, { address, webUrl, trainerUrl, processes }: Stack): void {
  console.result({
    ready: true,
    address,
    webUrl,
    trainerUrl,
    processes: processes.map(({ name, pid, logFile }) => ({ name, pid, logFile })),
  });
  console.print(
    [
      `Temporal  ${address}`,
      `Web UI    ${webUrl}`,
      `trainer   ${trainerUrl ?? `${process.env.TINKER_BASE_URL} (not ours)`}`,
      '',
      'Start a run in another terminal:',
      `  export TEMPORAL_ADDRESS=${address}`,
      `  ${COMMAND} start --config run.toml --tasks train.json --holdout holdout.json`,
      ...(trainerUrl ? ['A worker beside these needs as well:', `  export TINKER_BASE_URL=${trainerUrl} TINKER_API_KEY=${LOCAL_KEY}`] : []),
      `Ctrl-C stops everything here; runs go on with the next \`${COMMAND} up\`.`,
    ].join('\n'),
  );
}
