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
    await mkdir(left);
    await mkdir(foreign);
    const second = await makeScratchDir(root);
    expect([mine, left, foreign, second].map((path) => existsSync(path))).toEqual([true, false, true, true]);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});
