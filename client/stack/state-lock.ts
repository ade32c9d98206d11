import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CliError } from '../errors.ts';

/**
 * Keeps two stacks from using one state folder: they would share a database and the trainer's files. A lock that a killed stack left is
 * taken over, since none of its processes outlives it. Returns what gives it back. @throws CliError when another stack runs.
 */
export function lockState(stateDir: string): () => void {
  mkdirSync(stateDir, { recursive: true });
  const file = join(stateDir, 'stack.pid');
  for (;;) {
    try {
      writeFileSync(file, `${process.pid}\n`, { flag: 'wx' });
      return () => rmSync(file, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    const pid = Number.parseInt(readFileSync(file, 'utf8'), 10);
    if (isAlive(pid))
      throw new CliError(
        `${stateDir} is in use by another \`stillroom up\` or demo (pid ${pid}). Use that one, stop it, or choose another folder with --state. ` +
          `If pid ${pid} is some other program, remove ${file}.`,
      );
    rmSync(file, { force: true });
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
