import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { BadHarborInput } from './errors.ts';

/** The Python that runs harbor: `STILLROOM_PYTHON`, else the project's own environment. Throws `BadHarborInput` if it is not there. */
export async function harborPython(projectDir: string): Promise<string> {
  const named = process.env.STILLROOM_PYTHON;
  const python = named ?? join(projectDir, '.stillroom/python/bin/python');
  try {
    await access(python, constants.X_OK);
  } catch {
    const advice = named === undefined ? 'run `npm run demo` or `npm test` once, they set it up' : 'STILLROOM_PYTHON must name a Python';
    throw new BadHarborInput(`no Python at ${python}: ${advice}`);
  }
  return python;
}
