import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('./main.ts', import.meta.url));

test.each([
  [['--without', 'x'], 'no peer "x"; the peers are skyrl, skyrl-tx, hatchery'],
  [['--python', 'x=/bin/sh'], 'no peer "x"; the peers are'],
  [['--python', 'skyrl'], '--python is peer=path, got "skyrl"'],
  [['--python', 'skyrl=/nope'], '--python skyrl=/nope: /nope is no Python that runs: '],
  [['--python', `skyrl=${process.execPath}`], 'its --version does not say "Python 3."'],
])('bad arguments %j: exit 2 before anything is installed', async (args, said) => {
  const { exitCode, stdout, stderr } = await execa(process.execPath, [PROGRAM, ...args], { reject: false });
  expect([exitCode, stdout, stderr]).toEqual([2, '', expect.stringContaining(said)]);
});
