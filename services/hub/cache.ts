import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isCommit, type RepoName } from './repo-name.ts';

/**
 * The hub's cache on this machine, in the layout that all of its clients share: `refs/<branch>` holds a commit, `snapshots/<commit>/` the
 * files of that commit, as links to `blobs/`. Whatever has its name there is whole.
 */
export class HubCache {
  private readonly root: string;

  constructor(cacheDir: string, repo: string) {
    this.root = join(cacheDir, `models--${repo.replace('/', '--')}`);
  }

  /** The folder of a repository's state, whatever is in it; null where the cache does not know the state. */
  async snapshot({ revision }: Pick<RepoName, 'revision'>): Promise<{ readonly folder: string; readonly commit: string } | null> {
    const commit = isCommit(revision) ? revision : await this.commitOf(revision);
    return commit === null ? null : { folder: this.folderOf(commit), commit };
  }

  folderOf(commit: string): string {
    return join(this.root, 'snapshots', commit);
  }

  /** Puts a whole file into its place. Others may do the same at the same time; whoever reads meets all of it or nothing. */
  async put(commit: string, name: string, etag: string, bytes: Uint8Array): Promise<void> {
    const [blob, pointer] = [join(this.root, 'blobs', etag), join(this.folderOf(commit), name)];
    await placed(blob, (partial) => writeFile(partial, bytes));
    await placed(pointer, (partial) => linked(relative(dirname(pointer), blob), partial, bytes));
  }

  async pointTo(revision: string, commit: string): Promise<void> {
    if (!isCommit(revision)) await placed(join(this.root, 'refs', revision), (partial) => writeFile(partial, commit));
  }

  /** Where a state is looked up, for messages. */
  placeOf(revision: string): string {
    return isCommit(revision) ? this.folderOf(revision) : join(this.root, 'refs', revision);
  }

  private async commitOf(branch: string): Promise<string | null> {
    const text = await readFile(join(this.root, 'refs', branch), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return '';
      throw error;
    });
    return isCommit(text.trim()) ? text.trim() : null;
  }
}

async function placed(path: string, make: (partial: string) => Promise<void>): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const partial = `${path}.${randomUUID()}.incomplete`;
  try {
    await make(partial);
    await rename(partial, path);
  } finally {
    await rm(partial, { force: true });
  }
}

/** Disks without links get a second copy, as the hub's own tools make it. */
async function linked(target: string, path: string, bytes: Uint8Array): Promise<void> {
  await symlink(target, path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'EEXIST' || error.code === 'ENOENT') throw error;
    return writeFile(path, bytes);
  });
}
