import { access, constants, mkdir, mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIN_FREE_BYTES = 256 * 2 ** 20;

/** The fastest place for files that live as long as a trial: the RAM disk /dev/shm if it has room, else the temp directory. */
export async function scratchRoot(): Promise<string> {
  try {
    await access('/dev/shm', constants.W_OK | constants.X_OK);
    const space = await statfs('/dev/shm');
    if (space.bavail * space.bsize >= MIN_FREE_BYTES) return '/dev/shm';
  } catch {
    return tmpdir();
  }
  return tmpdir();
}

/** A new private folder for trial files under `root`; the caller removes it. */
export async function makeScratchDir(root: string): Promise<string> {
  await mkdir(root, { recursive: true });
  return mkdtemp(join(root, 'stillroom-trials-'));
}
