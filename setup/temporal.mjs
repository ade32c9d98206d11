import path from 'node:path';
import { probe, SetupError } from './host.mjs';
import { pythonPath } from './python.mjs';

/** The CLI brings the dev server. 1.9 is the oldest that was tried with the flags that we start it with; 2.x may change them. */
const MIN_MINOR = 9;

/** Both come as Python packages with the private environment. */
const own = path.join(path.dirname(pythonPath), 'temporal');
export const temporalTestServerPath = path.join(path.dirname(pythonPath), 'temporal-test-server');

/** The `temporal` to use: an installed one of a good version, else our own. */
export async function findTemporal() {
  for (const command of ['temporal', own]) {
    const found = await goodTemporal(command);
    if (found !== null) return found;
  }
  throw new SetupError(
    `The Temporal CLI does not run: \`${own} --version\` fails. Delete .stillroom/python and run the same command again.`,
    1,
  );
}

/** `{ command, version }` if this is a Temporal CLI that runs and is 1.9 or a later 1.x. */
export async function goodTemporal(command, env = process.env) {
  const { code, stdout } = await probe(command, ['--version'], { env });
  const [, version, major, minor] = /temporal version ((\d+)\.(\d+)\.\d+)/.exec(stdout) ?? [];
  return code === 0 && Number(major) === 1 && Number(minor) >= MIN_MINOR ? { command, version } : null;
}
