#!/usr/bin/env node
/**
 * Runs a command that must not outlive us: `node leash.mjs COMMAND ARG…`, started in a process group of its own with a pipe as stdin.
 * When the pipe closes (whoever started us ended, even by SIGKILL), the whole group is killed at once.
 * SIGTERM and SIGINT are passed on; the exit code is the command's (128 + number when a signal ended it).
 * The command's pid is written to descriptor 3, one line, if that is open.
 * Plain JavaScript without packages: the set-up uses it before anything is installed.
 */
import { spawn } from 'node:child_process';
import { writeSync } from 'node:fs';
import { constants } from 'node:os';

const [command, ...args] = process.argv.slice(2);
if (command === undefined) {
  process.stderr.write('leash: no command given\n');
  process.exit(2);
}

const child = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit'] });

/** Kills the group that we lead; the command alone when we were not made its leader. Does not return in the first case. */
function killAll() {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
    process.exit(137);
  }
}

child.on('error', (error) => {
  process.stderr.write(`leash: cannot start ${command}: ${error.message}\n`);
  process.exit(127);
});
child.on('exit', (code, signal) => process.exit(signal === null ? (code ?? 1) : 128 + constants.signals[signal]));
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));

process.stdin.on('end', killAll).on('error', killAll).resume();

if (process.env.STILLROOM_LEASH_PID_FD === '3' && child.pid !== undefined) writeSync(3, `${child.pid}\n`);
