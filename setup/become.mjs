import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import path from 'node:path';
import { root, swcCache } from './host.mjs';
import { nodePath } from './packages.mjs';

/**
 * Runs our Node with `argv` in our place: same terminal, same folder (npm makes that the clone), signals passed on, its exit code returned.
 * With `leashed`, descriptor 3 of the child is a pipe that closes when we end, even by SIGKILL, and the child watches it.
 */
export async function become(argv, env, leashed) {
  const child = spawn(nodePath, argv, {
    stdio: ['inherit', 'inherit', 'inherit', ...(leashed ? ['pipe'] : [])],
    env: {
      ...process.env,
      ...swcCache,
      ...env,
      ...(leashed ? { STILLROOM_PARENT_FD: '3' } : {}),
      PATH: [path.dirname(nodePath), path.join(root, 'node_modules', '.bin'), process.env.PATH].join(path.delimiter),
    },
  });
  // At a terminal, Ctrl-C reaches the whole foreground group: passing it on would make it two.
  const passOn = (signal) => {
    if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, passOn);
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('exit', (code, signal) => resolve(signal === null ? (code ?? 1) : 128 + constants.signals[signal]));
  });
}
