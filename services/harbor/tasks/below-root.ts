import { realpath } from 'node:fs/promises';
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { BadHarborInput } from '../errors.ts';

/**
 * A run reads only below its project root: that is what workers on other machines have too. Links are followed.
 * @throws BadHarborInput for a path that leads out
 */
export async function mustBeBelow(projectRoot: string, path: string): Promise<void> {
  const whole = resolve(projectRoot, path);
  const real = await realpath(whole).catch(() => null);
  if (leadsOut(projectRoot, whole) || (real !== null && leadsOut(await realpath(projectRoot), real)))
    throw new BadHarborInput(
      `path: ${path} is not below the project root, where workers read; copy the tasks there, or name a git repository`,
    );
}

function leadsOut(root: string, whole: string): boolean {
  const inside = relative(root, whole);
  return inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside);
}
