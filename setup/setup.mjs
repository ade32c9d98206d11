import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { saySetupDone, step } from './console.mjs';
import { stateDir } from './host.mjs';
import { withLock } from './lock.mjs';
import { installPackages, nodePath, packagesAreReady } from './packages.mjs';
import { makePython, pythonIsReady, pythonPath } from './python.mjs';
import { findPython } from './python-base.mjs';
import { findSandbox, noSandbox } from './sandbox.mjs';
import { findTemporal, temporalTestServerPath } from './temporal.mjs';

const recordFile = path.join(stateDir, 'setup.json');

/** npm packages and with them our Node. */
async function packages() {
  if (await packagesAreReady()) return false;
  await step('npm packages and Node 24', installPackages);
  return true;
}

/** Python with harbor and the Temporal CLI. */
async function python() {
  if (await pythonIsReady()) return false;
  const base = await findPython();
  await step(`private Python ${base.version} with harbor and the Temporal CLI`, () => makePython(base.command));
  return true;
}

/**
 * Brings the clone to where `needs` can run, and does nothing where it is there already. `needs`: `packages` for checks,
 * `everything` for what starts Temporal, harbor and Python, `sandbox` for what also runs trials on this machine at once.
 * `sandboxMode` is `bwrap` or `plain`. What was found is left in `.stillroom/setup.json`.
 */
export async function setUp(needs, sandboxMode) {
  if (needs === 'sandbox' && sandboxMode === 'bwrap' && process.platform !== 'linux') throw noSandbox(null);
  await withLock(path.join(stateDir, 'setup.lock'), async () => {
    const steps = needs === 'packages' ? [packages] : [packages, python];
    let worked = false;
    for (const work of steps) worked = (await work()) || worked;
    if (needs !== 'packages') await record(needs, sandboxMode);
    if (worked) saySetupDone();
  });
}

async function record(needs, sandboxMode) {
  const sandbox = process.platform === 'linux' ? await findSandbox() : { problem: null };
  if (needs === 'sandbox' && sandboxMode === 'bwrap' && sandbox.command === undefined) throw noSandbox(sandbox.problem);
  const temporal = await findTemporal();
  writeWhenChanged({
    node: nodePath,
    python: pythonPath,
    temporal: temporal.command,
    temporalTestServer: temporalTestServerPath,
    bwrap: sandbox.command ?? null,
  });
}

function writeWhenChanged(found) {
  const text = `${JSON.stringify(found, null, 2)}\n`;
  try {
    if (readFileSync(recordFile, 'utf8') === text) return;
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(`${recordFile}.new`, text);
  renameSync(`${recordFile}.new`, recordFile);
}
