import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

/** A virtual environment that is made at the first use and used again afterwards. */
export type PythonEnvironment = {
  readonly folder: string;
  /** Arguments of `pip install`. */
  readonly install: readonly string[];
  /** What it must hold, in any words: another text makes it anew. */
  readonly holds: string;
};

/** The environment's Python. pip's own settings (index, certificates, cache) stay in force. */
export async function pythonOf({ folder, install, holds }: PythonEnvironment): Promise<string> {
  const python = join(folder, 'bin', 'python');
  const stamp = join(folder, '.ready');
  // The stamp is written last: an environment whose making was interrupted is made again.
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === holds && (await runs(python))) return python;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(dirname(folder), { recursive: true });
  await execa(await basePython(), ['-m', 'venv', folder]);
  await execa(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...install]);
  writeFileSync(stamp, holds);
  return python;
}

/** A Python of 3.12 to 3.14 that runs; candidates are run, because a shim on PATH need not lead anywhere. */
async function basePython(): Promise<string> {
  const named = process.env.STILLROOM_PYTHON;
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions');
  const versions = existsSync(pyenv) ? readdirSync(pyenv).map((version) => join(pyenv, version, 'bin', 'python3')) : [];
  const own = fileURLToPath(new URL('../../.stillroom/python/bin/python', import.meta.url));
  const candidates = named === undefined ? [own, 'python3.12', 'python3.13', 'python3', ...versions] : [named];
  for (const candidate of candidates) if (await runs(candidate)) return candidate;
  throw new Error(`no working Python 3.12 to 3.14 among ${candidates.join(', ')}; set STILLROOM_PYTHON to one`);
}

async function runs(python: string): Promise<boolean> {
  const check = 'import sys, venv, ensurepip; sys.exit(0 if (3, 12) <= sys.version_info < (3, 15) else 1)';
  return (await execa(python, ['-c', check], { reject: false })).exitCode === 0;
}
