import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { indexText, readIndexText, type VersionIndex } from './version-index.ts';
import { INDEX_FILE, KEY_FILE, type ShelfLook, type VersionShelf, versionOf } from './version-shelf.ts';

/**
 * Versions as folders that people read, `<name>/vN/`, with `aliases.toml` beside them. A version is filled beside its place and renamed:
 * of two that are renamed to one number, one comes too late. The index is one file that people may edit; the last to write it wins.
 */
export class FolderShelf implements VersionShelf {
  private readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  names(): Promise<string[]> {
    return entriesOf(this.root);
  }

  async look(name: string): Promise<ShelfLook> {
    const path = join(this.root, name, INDEX_FILE);
    const index = readIndexText(path, (await orNull(readFile(path, 'utf8'))) ?? '');
    const versions = (await entriesOf(join(this.root, name))).map(versionOf).filter((version) => version !== null);
    return { versions, taken: versions, index, indexNumber: 0 };
  }

  async takenWith(name: string, key: string): Promise<number | null> {
    for (const version of (await this.look(name)).versions) {
      const found = await orNull(readFile(join(this.pathOf(name, version), KEY_FILE), 'utf8'));
      if (found?.trim() === key) return version;
    }
    return null;
  }

  async place(name: string, version: number, key: string, files: Readonly<Record<string, string>>): Promise<boolean> {
    const path = this.pathOf(name, version);
    const partial = `${path}.${randomUUID()}.partial`;
    await mkdir(partial, { recursive: true });
    try {
      for (const [file, text] of Object.entries({ ...files, [KEY_FILE]: `${key}\n` })) await writeFile(join(partial, file), text);
      await rename(partial, path);
      return true;
    } catch (error) {
      await rm(partial, { recursive: true, force: true });
      if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
      throw error;
    }
  }

  async replaceIndex(name: string, _seen: ShelfLook, index: VersionIndex): Promise<boolean> {
    const path = join(this.root, name, INDEX_FILE);
    const partial = `${path}.${randomUUID()}.partial`;
    await writeFile(partial, indexText(index));
    await rename(partial, path);
    return true;
  }

  read(name: string, version: number, file: string): Promise<string> {
    return readFile(join(this.pathOf(name, version), file), 'utf8');
  }

  pathOf(name: string, version: number): string {
    return join(this.root, name, `v${version}`);
  }
}

/** Names in a folder; none when there is no folder. */
const entriesOf = async (folder: string) => (await orNull(readdir(folder))) ?? [];

function orNull<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
}
