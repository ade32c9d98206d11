import type { Command } from 'commander';
import { portNumber } from '../input/number.ts';

/** Options of the commands that start everything on this machine. */
export function addStackFlags(command: Command): Command {
  return command
    .option('--port <n>', "Temporal's port; default: the settings'", portNumber)
    .option('--ui-port <n>', 'port of its Web UI', portNumber)
    .option('--trainer-port <n>', 'port of the embedded trainer', portNumber)
    .option('--state <dir>', 'folder for database, logs and trainer state', undefined);
}
