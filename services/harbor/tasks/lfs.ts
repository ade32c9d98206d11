import { open, stat } from 'node:fs/promises';
import { BadHarborInput } from '../errors.ts';
import { taskTree } from './task-tree.ts';

const POINTER = 'version https://git-lfs.github.com/spec/';
const MAX_POINTER_BYTES = 1024;

/** A machine without git-lfs checks out notes in the place of large files. @throws BadHarborInput naming the first */
export async function refuseUnfetched(folder: string, told: string): Promise<void> {
  for (const { path, file } of (await taskTree(folder)).files) {
    if ((await stat(file)).size > MAX_POINTER_BYTES) continue;
    await using handle = await open(file);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(POINTER.length), 0, POINTER.length, 0);
    if (buffer.toString('latin1', 0, bytesRead) === POINTER)
      throw new BadHarborInput(
        `${path} of task ${told} is kept in Git LFS, and was not fetched: install git-lfs on this machine (git lfs install)`,
      );
  }
}
