import { spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The clone, and the one folder that set-up may write to (besides node_modules). */
export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
export const stateDir = path.join(root, '.stillroom');

/** swc unpacks its native part into a cache, by default in the home directory; ours stays in the clone. It insists on a private folder. */
export const swcCache = { SWC_NATIVE_BINDING_CACHE: path.join(stateDir, 'cache', 'swc') };

const leash = path.join(root, 'services', 'processes', 'leash.mjs');

/** What a person can mend: one message, exit code 2 for something missing on the machine, 1 for a step that failed. */
export class SetupError extends Error {
  constructor(message, exitCode = 2) {
    super(message);
    this.exitCode = exitCode;
  }
}

/**
 * Runs a short command and returns `{ code, stdout, stderr }`; a command that cannot be started, or takes over `timeoutMs`, has code null.
 * Never throws: probing means expecting failures.
 */
export function probe(command, args, { timeoutMs = 15_000, env = process.env, cwd = root } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    const out = { stdout: '', stderr: '' };
    const tooLong = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const end = (code, problem) => {
      clearTimeout(tooLong);
      resolve({ code, stdout: out.stdout, stderr: problem ?? out.stderr });
    };
    child.stdout.setEncoding('utf8').on('data', (text) => (out.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (out.stderr += text));
    child.on('error', (error) => end(null, error.code === 'ENOENT' ? 'not found' : error.message));
    child.on('close', (code) => end(code));
  });
}

/**
 * Runs an installing command to its end; its output goes to `.stillroom/logs/setup-<name>.log`.
 * It dies with us, so that a killed set-up leaves nothing that still writes. Throws a SetupError with the log's last lines.
 */
export async function install(name, command, args, { env = process.env, cwd = root, advice }) {
  const logs = path.join(stateDir, 'logs');
  mkdirSync(logs, { recursive: true });
  const logFile = path.join(logs, `setup-${name}.log`);
  const log = openSync(logFile, 'w');
  writeSync(log, `$ ${[command, ...args].join(' ')}\n`);
  const child = spawn(process.execPath, [leash, command, ...args], { cwd, env, stdio: ['pipe', log, log], detached: true });
  child.stdin.on('error', () => {});
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('exit', resolve));
  if (code === 0) return;
  const tail = readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-15).join('\n  ');
  throw new SetupError(`${name} failed (exit ${code}):\n  ${tail}\nThe whole log: ${path.relative(root, logFile)}\n${advice}`, 1);
}
