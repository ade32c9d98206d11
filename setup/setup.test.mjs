import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withLock } from './lock.mjs';
import { matchesLock } from './packages.mjs';
import { findPython } from './python-base.mjs';
import { takeSandbox } from './run.mjs';
import { noSandbox } from './sandbox.mjs';
import { goodTemporal } from './temporal.mjs';

let dir;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'stillroom-setup-'));
  mkdirSync(path.join(dir, 'bin'));
  for (const tool of ['sh', 'echo', 'true'])
    symlinkSync(existsSync(`/bin/${tool}`) ? `/bin/${tool}` : `/usr/bin/${tool}`, path.join(dir, 'bin', tool));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Puts an executable shell script somewhere below the test's folder. */
function script(file, body) {
  const full = path.join(dir, file);
  mkdirSync(path.dirname(full), { recursive: true });
  writeFileSync(full, `#!/bin/sh\n${body}\n`);
  chmodSync(full, 0o755);
  return full;
}
/** A Python that answers the set-up's question. */
const python = (file, version) => script(file, `echo ${version}; echo ${path.join(dir, file)}`);
const environment = (more = {}) => ({ PATH: path.join(dir, 'bin'), HOME: path.join(dir, 'home'), ...more });

describe('finding a Python', () => {
  it('passes over shims that exist but do not run, and versions that are too old or too new', async () => {
    python('bin/python3', '3.11.7');
    script('bin/python3.13', 'echo "pyenv: python3.13: command not found" >&2; exit 127');
    python('bin/python3.12', '3.12.1');
    expect(await findPython(environment())).toEqual({ command: path.join(dir, 'bin/python3.12'), version: '3.12.1' });
    python('bin/python3.12', '3.15.0');
    await expect(findPython(environment())).rejects.toThrow(/python3.12: is 3.15.0/);
  });

  it("looks into pyenv's version folders, newest good one first, and through its shims when nothing else says where they are", async () => {
    python('root/versions/3.9.2/bin/python3', '3.9.2');
    python('root/versions/3.12.10/bin/python3', '3.12.10');
    const newest = python('root/versions/3.13.0/bin/python3', '3.13.0');
    expect((await findPython(environment({ PYENV_ROOT: path.join(dir, 'root') }))).command).toBe(newest);
    const PATH = [path.join(dir, 'root', 'shims'), path.join(dir, 'bin')].join(path.delimiter);
    expect((await findPython(environment({ PATH }))).command).toBe(newest);
  });

  it('asks uv last', async () => {
    const managed = python('uv-made/python3.13', '3.13.1');
    script('bin/uv', `[ "$1 $2" = "python find" ] && echo ${managed}`);
    expect((await findPython(environment())).command).toBe(managed);
  });

  it('takes the one that is named, and no other when that one is bad', async () => {
    const named = python('elsewhere/python', '3.12.4');
    python('bin/python3', '3.13.0');
    expect((await findPython(environment({ STILLROOM_PYTHON_BASE: named }))).command).toBe(named);
    python('elsewhere/python', '3.8.0');
    await expect(findPython(environment({ STILLROOM_PYTHON_BASE: named }))).rejects.toThrow(/elsewhere\/python: is 3.8.0/);
  });

  it('names what is missing and the commands that get it, with exit code 2', async () => {
    script('bin/python3', 'echo "No module named ensurepip" >&2; exit 1');
    const missing = findPython(environment(), 'linux');
    await expect(missing).rejects.toMatchObject({ exitCode: 2 });
    await expect(missing).rejects.toThrow(/python3: No module named ensurepip[\s\S]*apt-get install -y python3 python3-venv/);
    await expect(findPython(environment(), 'darwin')).rejects.toThrow(/brew install python@3.13/);
  });
});

describe('an installed Temporal CLI', () => {
  it.each([
    ['temporal version 1.9.1 (Server 1.32.0, UI 2.54.1)', true],
    ['temporal version 1.12.0 (Server 1.40.0, UI 2.60.0)', true],
    ['temporal version 1.8.3 (Server 1.31.0, UI 2.50.0)', false],
    ['temporal version 2.0.0 (Server 2.0.0, UI 3.0.0)', false],
    ['tctl version 1.18.0', false],
  ])('"%s" is good: %s', async (answer, good) => {
    const command = script('bin/temporal', `echo "${answer}"`);
    expect((await goodTemporal(command, environment())) !== null).toBe(good);
  });

  it('is not good when it cannot be started', async () => {
    expect(await goodTemporal(path.join(dir, 'nothing'), environment())).toBeNull();
  });
});

describe('node_modules that npm filled by hand', () => {
  const lock = {
    packages: { '': {}, 'node_modules/a': { version: '1.0.0' }, 'node_modules/a-darwin': { version: '1.0.0', optional: true } },
  };
  it.each([
    ['all there', { 'node_modules/a': { version: '1.0.0' } }, true],
    ['another version', { 'node_modules/a': { version: '1.0.1' } }, false],
    ['one missing', { 'node_modules/a-darwin': { version: '1.0.0' } }, false],
  ])('%s', (_, packages, good) => expect(matchesLock(lock, { packages })).toBe(good));
  it('nothing known', () => expect(matchesLock(lock, null)).toBe(false));
});

describe('--sandbox', () => {
  it.each([
    [['--sandbox', 'plain', 'x'], {}, { mode: 'plain', rest: ['x'] }],
    [['x', '--sandbox=plain'], {}, { mode: 'plain', rest: ['x'] }],
    [['x'], {}, { mode: 'bwrap', rest: ['x'] }],
    [[], { STILLROOM_SANDBOX: 'plain' }, { mode: 'plain', rest: [] }],
    [['--sandbox', 'bwrap'], { STILLROOM_SANDBOX: 'plain' }, { mode: 'bwrap', rest: [] }],
  ])('%j with %j', (args, env, expected) => expect(takeSandbox(args, env)).toEqual(expected));

  it.each([[['--sandbox']], [['--sandbox', 'docker']]])('%j is refused', (args) => {
    expect(() => takeSandbox(args, {})).toThrow(/--sandbox is "bwrap"/);
  });

  it('without a sandbox the way on is named, with its warning', () => {
    expect(noSandbox(null, 'darwin').message).toMatch(
      /macOS[\s\S]*npm run demo -- --sandbox plain[\s\S]*npm test -- --sandbox plain[\s\S]*run as you, without isolation/,
    );
    expect(noSandbox(null, 'linux').message).toMatch(/bwrap\) was not found[\s\S]*apt-get install -y bubblewrap/);
    expect(noSandbox('bwrap: Creating new namespace failed', 'linux').message).toMatch(
      /cannot start a sandbox here: bwrap: Creating new namespace failed/,
    );
  });
});

describe('two set-ups at once', () => {
  const lockFile = () => path.join(dir, 'setup.lock');
  const holder = (body) =>
    spawn(process.execPath, [
      '--input-type=module',
      '-e',
      `import { withLock } from ${JSON.stringify(path.join(import.meta.dirname, 'lock.mjs'))}; ${body}`,
      lockFile(),
    ]);
  const untilLocked = () => expect.poll(() => existsSync(lockFile()), { timeout: 20_000 }).toBe(true);

  it('work one after the other', async () => {
    let inside = 0;
    const work = async () => {
      expect(++inside).toBe(1);
      await new Promise((resolve) => setTimeout(resolve, 50));
      inside--;
    };
    await Promise.all([withLock(lockFile(), work), withLock(lockFile(), work), withLock(lockFile(), work)]);
    expect(existsSync(lockFile())).toBe(false);
  });

  it('a lock whose holder was killed is taken over', async () => {
    const other = holder('await withLock(process.argv[1], () => new Promise((resolve) => setTimeout(resolve, 60_000)));');
    await untilLocked();
    const gone = new Promise((resolve) => other.once('exit', resolve));
    other.kill('SIGKILL');
    await gone;
    expect(await withLock(lockFile(), async () => 'done')).toBe('done');
  });

  it('a lock whose holder lives is waited for', async () => {
    const mark = path.join(dir, 'mark');
    const slow = `await withLock(process.argv[1], async () => { await new Promise((r) => setTimeout(r, 500)); (await import('node:fs')).writeFileSync(${JSON.stringify(mark)}, 'first'); });`;
    holder(slow);
    await untilLocked();
    await withLock(lockFile(), async () => expect(readFileSync(mark, 'utf8')).toBe('first'));
  });
});
