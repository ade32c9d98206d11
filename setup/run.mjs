#!/usr/bin/env node
/**
 * The front door of every npm script: `node setup/run.mjs MODE ARG…` does the set-up that MODE needs (nothing the second time) and then
 * runs it on our own Node. Plain JavaScript for any Node from 20.11 on, without packages: there are none before set-up.
 */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { become } from './become.mjs';
import { say } from './console.mjs';
import { root, SetupError } from './host.mjs';
import { PLAIN_WARNING } from './sandbox.mjs';
import { setUp } from './setup.mjs';

const file = (...parts) => path.join(root, ...parts);

/**
 * What each mode needs, what it then runs, with which variables,
 * and whether that watches us (`leashed`) because it keeps processes running. */
const MODES = {
  setup: { needs: 'everything', argv: () => null },
  demo: { needs: 'sandbox', leashed: true, argv: (args) => [file('client', 'cli.ts'), 'demo', ...args] },
  // vitest keeps a token in the user's data folder
  test: {
    needs: 'sandbox',
    env: { XDG_DATA_HOME: file('.stillroom', 'cache', 'data') },
    argv: (args) => [file('node_modules', 'vitest', 'vitest.mjs'), 'run', ...args],
  },
  bench: { needs: 'sandbox', argv: (args) => [file('bench', 'bench.ts'), ...args] },
  histories: { needs: 'everything', argv: (args) => [file('test', 'histories', 'record.ts'), ...args] },
  chaos: { needs: 'sandbox', argv: (args) => [file('test', 'chaos', 'main.ts'), ...args] },
  quickstart: { needs: 'packages', argv: (args) => [file('examples', 'quickstart', 'generate.ts'), ...args] },
  cli: { needs: 'everything', leashed: true, argv: (args) => [file('client', 'cli.ts'), ...args] },
  trainer: { needs: 'packages', argv: (args) => [file('trainer', 'main.ts'), ...args] },
  vectors: { needs: 'packages', argv: (args) => [file('test', 'vectors', 'run.ts'), ...args] },
  'drive-tinker': { needs: 'packages', argv: (args) => [file('test', 'tinker-drive', 'main.ts'), ...args] },
  'test:peers': { needs: 'sandbox', argv: (args) => [file('test', 'peers', 'main.ts'), ...args] },
  check: { needs: 'packages', argv: (args) => [file('setup', 'check', 'check.ts'), ...args] },
  format: { needs: 'packages', argv: (args) => [file('node_modules', '@biomejs', 'biome', 'bin', 'biome'), 'check', '--write', ...args] },
};

const MIN_NODE = [20, 11];

/** Takes `--sandbox MODE` out of the arguments; the environment variable says it to everything below. */
export function takeSandbox(args, env) {
  const rest = [...args];
  const at = rest.findIndex((arg) => arg === '--sandbox' || arg.startsWith('--sandbox='));
  let mode = env.STILLROOM_SANDBOX || 'bwrap';
  if (at !== -1) {
    const [option] = rest.splice(at, 1);
    mode = option.includes('=') ? option.slice(option.indexOf('=') + 1) : (rest.splice(at, 1)[0] ?? '');
  }
  if (mode !== 'bwrap' && mode !== 'plain')
    throw new SetupError(`--sandbox is "bwrap" (isolated, the default) or "plain" (no isolation); got "${mode}"`);
  return { mode, rest };
}

export async function main([modeName, ...args]) {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < MIN_NODE[0] || (major === MIN_NODE[0] && minor < MIN_NODE[1]))
    throw new SetupError(
      `Node.js ${MIN_NODE.join('.')} or later starts the set-up; this is ${process.versions.node}. Get a newer one from your system's packages.`,
    );
  const mode = MODES[modeName];
  if (mode === undefined) throw new SetupError(`unknown mode "${modeName}"; one of ${Object.keys(MODES).join(', ')}`);
  const sandbox = takeSandbox(args, process.env);
  await setUp(mode.needs, sandbox.mode);
  if (sandbox.mode === 'plain' && mode.needs === 'sandbox') say(`${PLAIN_WARNING}\n`);
  const argv = mode.argv(sandbox.rest);
  return argv === null ? 0 : become(argv, { STILLROOM_SANDBOX: sandbox.mode, ...mode.env }, mode.leashed === true);
}

/** Runs `main` as a program: a message instead of a stack where a person can mend it. */
export async function runAsProgram(args) {
  try {
    process.exitCode = await main(args);
  } catch (error) {
    if (!(error instanceof SetupError)) throw error;
    say(`${error.message}\n`);
    process.exitCode = error.exitCode;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await runAsProgram(process.argv.slice(2));
