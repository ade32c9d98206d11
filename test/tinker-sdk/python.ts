import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';

const SDK = 'tinker==0.38.0';
const folder = fileURLToPath(new URL('../../.stillroom/tinker-sdk-venv', import.meta.url));

/** The Python of an environment that holds the official SDK; made at the first use (it takes a minute) and used again afterwards. */
export async function sdkPython(): Promise<string> {
  const python = join(folder, 'bin', 'python');
  const stamp = join(folder, '.ready');
  // The stamp is written last: an environment whose making was interrupted is made again.
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === SDK && (await runs(python))) return python;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, '..'), { recursive: true });
  await execa(await basePython(), ['-m', 'venv', folder]);
  await execa(python, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', SDK]);
  writeFileSync(stamp, SDK);
  return python;
}

/** A Python ≥ 3.12 that runs; candidates are run, because a shim on PATH need not lead anywhere. */
async function basePython(): Promise<string> {
  const named = process.env.STILLROOM_PYTHON;
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions');
  const versions = existsSync(pyenv) ? readdirSync(pyenv).map((version) => join(pyenv, version, 'bin', 'python3')) : [];
  const own = fileURLToPath(new URL('../../.stillroom/python/bin/python', import.meta.url));
  const candidates = [...(named === undefined ? [] : [named]), own, 'python3.12', 'python3.13', 'python3', ...versions];
  for (const candidate of candidates) if (await runs(candidate)) return candidate;
  throw new Error(`no working Python >= 3.12 among ${candidates.join(', ')}; set STILLROOM_PYTHON to one`);
}

async function runs(python: string): Promise<boolean> {
  const check = 'import sys, venv, ensurepip; sys.exit(0 if sys.version_info >= (3, 12) else 1)';
  return (await execa(python, ['-c', check], { reject: false })).exitCode === 0;
}
