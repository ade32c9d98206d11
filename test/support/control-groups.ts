import { accessSync, constants, readFileSync } from 'node:fs';

/** Whether a group with a memory limit can be made below the one we are in. Looked up without the product: its tests must not judge themselves. */
export const CGROUPS_ARE_HERE = ['memory', ''].some((hierarchy) => {
  try {
    const own = new RegExp(`^\\d+:${hierarchy}:(.*)$`, 'm').exec(readFileSync('/proc/self/cgroup', 'utf8'))?.[1];
    const folder = `/sys/fs/cgroup/${hierarchy}${own}`;
    accessSync(folder, constants.W_OK);
    return hierarchy === 'memory' || readFileSync(`${folder}/cgroup.subtree_control`, 'utf8').split(/\s/).includes('memory');
  } catch {
    return false;
  }
});
