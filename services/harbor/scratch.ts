import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { removeTree } from './remove-tree.ts';

/** What a process keeps in a folder of its own: folders of trials that run, or the HOME of its harbor runner. */
export type ScratchKind = 'trials' | 'home';

/** Names the machine as well as the process: containers that share a folder do not share process ids. */
const MACHINE = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

const prefixOf = (kind: ScratchKind) => `stillroom-${kind}-${MACHINE}-`;

/** A new private folder of this process under `root`, for the caller to remove; clears those of its kind that dead processes left there. */
export async function makeScratchDir(root: string, kind: ScratchKind = 'trials'): Promise<string> {
  await mkdir(root, { recursive: true });
  await sweepScratch(root, kind);
  return mkdtemp(join(root, `${prefixOf(kind)}${process.pid}-${await bornAt(process.pid)}-`));
}

/** Removes what dead processes of this machine left under `root`; what cannot be removed is left for the next sweep. */
export async function sweepScratch(root: string, kind: ScratchKind): Promise<void> {
  const prefix = prefixOf(kind);
  for (const name of await readdir(root).catch(() => [])) {
    if (!name.startsWith(prefix)) continue;
    const [pid, born = ''] = name.slice(prefix.length).split('-');
    if (!isAlive(Number(pid)) || (await bornAt(Number(pid))) !== born) await removeTree(join(root, name)).catch(() => {});
  }
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
