import { isAbsolute, relative, resolve } from 'node:path';

/** Whether `path` names something below `root`, as far as its text says. */
export function isBelow(root: string, path: string): boolean {
  const inside = relative(root, resolve(root, path));
  return inside !== '' && !inside.startsWith('..') && !isAbsolute(inside);
}
