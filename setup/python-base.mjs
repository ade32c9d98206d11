import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { probe, SetupError } from './host.mjs';

/** harbor needs 3.12. The upper bound is the newest version that the locked packages have ready-made wheels for. */
const MIN_MINOR = 12;
const MAX_MINOR = 14;

/** Prints the version and proves that a private environment with pip can be made (Debian splits that off into python3-venv). */
const QUESTION = 'import sys, venv, ensurepip, ssl; print("%d.%d.%d" % sys.version_info[:3]); print(sys.executable)';

/**
 * Finds a Python that really runs, by running candidates in order. Existing files prove nothing: pyenv's shims exist for versions that
 * are not selected. Returns `{ command, version }`; throws a SetupError that lists what was tried and the command that gets one.
 */
export async function findPython(env = process.env, platform = process.platform) {
  const tried = [];
  for await (const command of candidates(env)) {
    if (tried.some((attempt) => attempt.command === command)) continue;
    const answer = await ask(command, env);
    if (answer.problem === undefined) return { command: answer.executable, version: answer.version };
    tried.push({ command, problem: answer.problem });
    if (command === env.STILLROOM_PYTHON_BASE) break; // named by a person: never silently another one
  }
  throw new SetupError(
    [
      `No working Python 3.${MIN_MINOR} to 3.${MAX_MINOR} was found. Tried, by running them:`,
      ...tried.map(({ command, problem }) => `  ${command}: ${problem}`),
      'Get one with:',
      ...remedies(platform).map((line) => `  ${line}`),
      'or name one: STILLROOM_PYTHON_BASE=/path/to/python3.13',
    ].join('\n'),
  );
}

async function ask(command, env) {
  const { code, stdout, stderr } = await probe(command, ['-I', '-c', QUESTION], { env });
  if (code !== 0) return { problem: lastLine(stderr) ?? 'does not run' };
  const [version = '', executable = ''] = stdout.trim().split('\n');
  const [major, minor] = version.split('.').map(Number);
  if (major !== 3 || !(minor >= MIN_MINOR && minor <= MAX_MINOR)) return { problem: `is ${version}` };
  return { version, executable };
}

const lastLine = (text) => text.trim().split('\n').at(-1)?.trim() || undefined;

async function* candidates(env) {
  if (env.STILLROOM_PYTHON_BASE) yield env.STILLROOM_PYTHON_BASE;
  yield* ['python3', 'python3.13', 'python3.12', 'python3.14', 'python'];
  yield* managedVersions(env);
  const { code, stdout } = await probe('uv', ['python', 'find', '--no-project', `>=3.${MIN_MINOR},<3.${MAX_MINOR + 1}`], { env });
  if (code === 0 && stdout.trim() !== '') yield stdout.trim();
}

/** Versions that pyenv, asdf and mise keep in folders of their own, newest first. Their shims on PATH lead to the folder too. */
function managedVersions(env) {
  const home = env.HOME ?? homedir();
  const shims = (env.PATH ?? '').split(path.delimiter).filter((dir) => path.basename(dir) === 'shims');
  const folders = [
    ...(env.PYENV_ROOT ? [path.join(env.PYENV_ROOT, 'versions')] : []),
    path.join(home, '.pyenv', 'versions'),
    ...shims.map((dir) => path.join(path.dirname(dir), 'versions')),
    path.join(home, '.asdf', 'installs', 'python'),
    path.join(home, '.local', 'share', 'mise', 'installs', 'python'),
  ];
  return [...new Set(folders)].flatMap((folder) => versionsIn(folder).map((version) => path.join(folder, version, 'bin', 'python3')));
}

function versionsIn(folder) {
  const minor = (name) => Number(/^3\.(\d+)(\.\d+)?$/.exec(name)?.[1] ?? Number.NaN);
  let names;
  try {
    names = readdirSync(folder);
  } catch {
    return []; // this manager is not in use
  }
  return names
    .filter((name) => minor(name) >= MIN_MINOR && minor(name) <= MAX_MINOR)
    .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
}

function remedies(platform) {
  if (platform === 'darwin') return ['brew install python@3.13', 'uv python install 3.13'];
  return [
    'sudo apt-get install -y python3 python3-venv   (Debian 13, Ubuntu 24.04 and later)',
    'sudo dnf install -y python3.13                 (Fedora, RHEL)',
    'uv python install 3.13                         (any system with uv)',
    'pyenv install 3.13                             (any system with pyenv)',
  ];
}
