import { createHash } from 'node:crypto';
import { access, constants, mkdir, mkdtemp, readdir, readFile, rm, statfs } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';

const MIN_FREE_BYTES = 256 * 2 ** 20;

/** Names the machine as well as the process: containers that share a /dev/shm do not share process ids. */
const MACHINE_PREFIX = `stillroom-trials-${createHash('sha256').update(hostname()).digest('hex').slice(0, 8)}-`;

/** The fastest place for files that live as long as a trial: the RAM disk /dev/shm if it has room, else the temp directory. */
export async function scratchRoot(): Promise<string> {
  try {
    await access('/dev/shm', constants.W_OK | constants.X_OK);
    const space = await statfs('/dev/shm');
    if (space.bavail * space.bsize >= MIN_FREE_BYTES) return '/dev/shm';
  } catch {
    return tmpdir();
  }
  return tmpdir();
}

/** A new private folder for trial files under `root`, for the caller to remove; clears those that dead processes left there. */
export async function makeScratchDir(root: string): Promise<string> {
  await mkdir(root, { recursive: true });
  for (const name of await readdir(root)) {
    if (!name.startsWith(MACHINE_PREFIX)) continue;
    const [pid, born = ''] = name.slice(MACHINE_PREFIX.length).split('-');
    if (!isAlive(Number(pid)) || (await bornAt(Number(pid))) !== born) await rm(join(root, name), { recursive: true, force: true });
  }
  return mkdtemp(join(root, `${MACHINE_PREFIX}${process.pid}-${await bornAt(process.pid)}-`));
}

/** When a process was born, in clock ticks since boot: a later one with its pid is another. `0` where there is no /proc to tell. */
async function bornAt(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name, in parentheses, may hold anything; see proc(5).
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '0';
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
