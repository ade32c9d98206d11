import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { expect, test } from 'vitest';
import { makeScratchDir } from './scratch.ts';

test('folders of dead processes are cleared, those of living ones and of strangers stay', async () => {
  const root = await mkdtemp(join(tmpdir(), 'stillroom-scratch-'));
  try {
    const mine = await makeScratchDir(root);
    const dead = spawnSync(process.execPath, ['-e', '']).pid;
    const left = join(root, basename(mine).replace(`-${process.pid}-`, `-${dead}-`));
    const foreign = join(root, `stillroom-trials-otherbox-${dead}-abc`);
    // A process of today with the pid of one that is gone.
    const reused = join(root, basename(mine).replace(`-${process.pid}-`, `-${process.pid}-1`));
    await mkdir(left);
    await mkdir(reused);
    await mkdir(foreign);
    const second = await makeScratchDir(root);
    const cleared = existsSync('/proc') ? [left, reused] : [left];
    expect(cleared.filter((path) => existsSync(path))).toEqual([]);
    expect([mine, foreign, second].filter((path) => !existsSync(path))).toEqual([]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
