import { readFile } from 'node:fs/promises';
import { freemem } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * Bytes that this process's part of the machine can still use before something is killed or swapped out: what the kernel has available, or
 * what the control groups around us (version 1 or 2) leave, whichever is less. Files that are only cached count as free.
 */
export async function availableBytes(root = '/'): Promise<number> {
  const [machine, groups] = await Promise.all([ofMachine(root), ofGroups(root)]);
  return Math.min(machine ?? freemem(), ...groups);
}

async function ofMachine(root: string): Promise<number | null> {
  const [, kibibytes] = /^MemAvailable:\s+(\d+) kB$/m.exec(await text(root, 'proc/meminfo')) ?? [];
  return kibibytes === undefined ? null : Number(kibibytes) * 1024;
}

/** What each control group above us leaves, as far as it can be seen from here. */
async function ofGroups(root: string): Promise<number[]> {
  const lines = (await text(root, 'proc/self/cgroup')).split('\n').map((line) => line.split(':'));
  const found = lines.flatMap(([, controllers, ...path]) => {
    const own = path.join(':');
    if (controllers === '') return V2_MOUNTS.flatMap((mount) => ancestors(own).map((at) => leftIn(root, join(mount, at), V2)));
    if (controllers?.split(',').includes('memory')) return ancestors(own).map((at) => leftIn(root, join(V1_MOUNT, at), V1));
    return [];
  });
  return (await Promise.all(found)).filter((bytes) => bytes !== null);
}

const V2_MOUNTS = ['sys/fs/cgroup', 'sys/fs/cgroup/unified'];
const V1_MOUNT = 'sys/fs/cgroup/memory';

type Files = { readonly limit: string; readonly usage: string; readonly cached: string };
const V2: Files = { limit: 'memory.max', usage: 'memory.current', cached: 'inactive_file' };
const V1: Files = { limit: 'memory.limit_in_bytes', usage: 'memory.usage_in_bytes', cached: 'total_inactive_file' };

/** `/a/b` → `/a/b`, `/a`, `/`: in a container the path may be one of outside, and the top is then our own group. */
function ancestors(path: string): string[] {
  return path === '/' || !path.startsWith('/') ? ['/'] : [path, ...ancestors(dirname(path))];
}

/** Null for a group that is not there or has no limit. */
async function leftIn(root: string, group: string, { limit, usage, cached }: Files): Promise<number | null> {
  const [most, used, stat] = await Promise.all([limit, usage, 'memory.stat'].map((name) => text(root, join(group, name))));
  if (!/^\d+\s*$/.test(most ?? '') || !/^\d+\s*$/.test(used ?? '')) return null;
  const [, reclaimable = '0'] = new RegExp(`^${cached} (\\d+)$`, 'm').exec(stat ?? '') ?? [];
  return Math.max(0, Number(most) - Number(used) + Number(reclaimable));
}

/** Empty for a file that is not there. */
const text = (root: string, path: string) => readFile(join(root, path), 'utf8').catch(() => '');
