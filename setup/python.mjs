import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { install, probe, root, stateDir } from './host.mjs';

const venv = path.join(stateDir, 'python');
const python = path.join(venv, 'bin', 'python');
const lockFile = path.join(root, 'harbor_plugin', 'requirements.lock');
const stampFile = path.join(venv, '.stillroom-stamp');

const hash = (...parts) => createHash('sha256').update(parts.join('\n')).digest('hex');

/** What the environment must hold, and where it must be: a virtual environment does not survive a move of the clone. */
const wantedStamp = () => hash(readFileSync(lockFile, 'utf8'), venv, process.platform, process.arch);

const currentStamp = () => (existsSync(stampFile) ? readFileSync(stampFile, 'utf8') : null);

/** True when the private Python is whole, of this lock file, and runs (its base may have been uninstalled since). */
export async function pythonIsReady() {
  return currentStamp() === wantedStamp() && (await probe(python, ['-c', 'pass'])).code === 0;
}

export const pythonPath = python;

/**
 * Makes the environment from nothing. The stamp comes last, so an interrupted one is never taken for a whole one. The lock file names
 * everything and only ready-made wheels are taken: nothing is resolved or compiled here, and bytecode is left to be made on first use, which
 * is a small part of what is installed.
 */
export async function makePython(base) {
  rmSync(venv, { recursive: true, force: true });
  await install('python', base, ['-I', '-m', 'venv', venv], { advice: `Does \`${base} -m venv\` work on this machine?` });
  const exactly = ['--no-deps', '--only-binary', ':all:', '--no-compile', '-r', lockFile];
  await install('harbor', python, ['-m', 'pip', 'install', ...exactly], {
    env: pipEnv(),
    advice: 'Check the network (or the package index that pip is set up for) and run the same command again.',
  });
  writeFileSync(stampFile, wantedStamp());
}

/** The user's own pip settings stay in force (mirrors, certificates); only the cache moves into the clone. */
const pipEnv = () => ({
  ...process.env,
  PIP_CACHE_DIR: path.join(stateDir, 'cache', 'pip'),
  PIP_DISABLE_PIP_VERSION_CHECK: '1',
  PIP_NO_INPUT: '1',
});
