import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { install, probe, root, SetupError, stateDir, swcCache } from './host.mjs';

const modules = path.join(root, 'node_modules');
const stampFile = path.join(modules, '.stillroom-stamp');
const node24 = path.join(modules, 'node', 'bin', 'node');

/** The Node that everything of ours runs on: it comes as a package, so the host's version does not matter. */
export const nodePath = node24;

const readJson = (file) => (existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null);

const wantedStamp = () =>
  createHash('sha256')
    .update([readFileSync(path.join(root, 'package-lock.json'), 'utf8'), process.platform, process.arch].join('\n'))
    .digest('hex');

/** True when node_modules is whole, of this lock file and this platform, and its Node runs. */
export async function packagesAreReady() {
  if (!existsSync(modules) || !(await ownNodeRuns())) return false;
  if (existsSync(stampFile) && readFileSync(stampFile, 'utf8') === wantedStamp()) return true;
  if (!matchesLock(readJson(path.join(root, 'package-lock.json')), readJson(path.join(modules, '.package-lock.json')))) return false;
  writeFileSync(stampFile, wantedStamp()); // installed by hand with npm: good, and from now on known
  return true;
}

async function ownNodeRuns() {
  const wanted = readJson(path.join(root, 'package.json')).devDependencies.node;
  return (await probe(node24, ['--version'])).stdout.trim() === `v${wanted}`;
}

/** True when npm's own record of what it installed has every package of the lock file; optional ones are of other platforms. */
export function matchesLock(wanted, installed) {
  if (installed === null) return false;
  return Object.entries(wanted.packages).every(([name, { version, optional }]) => {
    const there = installed.packages[name];
    return name === '' || (there === undefined ? optional === true : there.version === version);
  });
}

/** `npm ci`, with the cache inside the clone and the user's own npm settings (registry, certificates) in force. */
export async function installPackages() {
  await requireNpm();
  const env = { ...process.env, ...swcCache, npm_config_cache: path.join(stateDir, 'cache', 'npm') };
  const advice = 'Check the network (or the registry that npm is set up for) and run the same command again.';
  await install('npm', 'npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--include=dev', '--include=optional'], {
    env,
    advice,
  });
  if (!(await ownNodeRuns())) {
    // Install scripts are off here; this one only fetches the platform's Node package and links it.
    await install('node', process.execPath, ['installArchSpecificPackage'], { env, advice, cwd: path.join(modules, 'node') });
  }
  if (!(await ownNodeRuns())) throw new SetupError(`The Node package does not run on this system: ${node24} --version fails.`, 1);
  writeFileSync(stampFile, wantedStamp());
}

async function requireNpm() {
  if ((await probe('npm', ['--version'])).code === 0) return;
  throw new SetupError(
    'npm was not found on PATH. It comes with Node.js: install Node.js 20.11 or later (for example `sudo apt-get install -y npm`).',
  );
}
