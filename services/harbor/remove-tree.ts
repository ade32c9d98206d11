import { chmod, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Removes a folder, also one in which programs took away their own permissions. Never follows links. @throws what the system says */
export async function removeTree(dir: string): Promise<void> {
  try {
    await rm(dir, { recursive: true, force: true });
  } catch {
    await makeRemovable(dir);
    await rm(dir, { recursive: true, force: true });
  }
}

async function makeRemovable(dir: string): Promise<void> {
  await chmod(dir, 0o700).catch(() => {});
  for (const entry of await readdir(dir, { withFileTypes: true }).catch(() => [])) {
    if (entry.isDirectory()) await makeRemovable(join(dir, entry.name));
  }
}
