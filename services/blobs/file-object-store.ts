import { randomUUID } from 'node:crypto';
import { access, link, mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { keyParts, type ObjectEntry, type ObjectKey, type ObjectStore, ObjectStoreUnusable, prefixParts } from './object-store.ts';

const PARTIAL = '.partial';

/**
 * Objects as files below `root`. Each is written beside its place, flushed, and put there in one move, which is flushed as well: a reader or
 * a crash never meets half of one, and one that was written outlives a power cut. For all processes of one machine.
 */
export class FileObjectStore implements ObjectStore {
  private readonly root: string;
  private readonly madeDirectories = new Set<string>();

  constructor(root: string) {
    this.root = root;
  }

  /** Makes sure that objects can be made here. @throws ObjectStoreUnusable: no folder, no right to write, no hard links, a full disk */
  async probe(): Promise<void> {
    const key = `probe/${randomUUID()}`;
    try {
      await this.create(key, new Uint8Array([1]));
      await this.delete(key);
    } catch (error) {
      throw new ObjectStoreUnusable(
        `the blob store ${this.root} cannot be used (${(error as Error).message}): see blobStore in temporal.config.json`,
      );
    }
  }

  async get(key: ObjectKey): Promise<Uint8Array | null> {
    return orNull(readFile(this.pathOf(key)));
  }

  async has(key: ObjectKey): Promise<boolean> {
    return (await orNull(access(this.pathOf(key)).then(() => true))) ?? false;
  }

  async put(key: ObjectKey, bytes: Uint8Array): Promise<void> {
    await this.write(key, bytes, rename);
  }

  async create(key: ObjectKey, bytes: Uint8Array): Promise<boolean> {
    if (await this.has(key)) return false;
    try {
      await this.write(key, bytes, link);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
      throw error;
    }
  }

  async delete(key: ObjectKey): Promise<void> {
    await rm(this.pathOf(key), { force: true });
    await this.removeEmpty(keyParts(key).slice(0, -1));
  }

  async *list(prefix: string): AsyncIterable<ObjectEntry> {
    yield* this.entriesBelow(prefixParts(prefix));
  }

  private async *entriesBelow(parts: readonly string[]): AsyncIterable<ObjectEntry> {
    const found = (await orNull(readdir(join(this.root, ...parts), { withFileTypes: true }))) ?? [];
    // A folder sorts as its keys do: by its name with the slash.
    const named = found.map((entry) => ({ entry, order: entry.isDirectory() ? `${entry.name}/` : entry.name }));
    for (const { entry } of named.sort((a, b) => (a.order < b.order ? -1 : 1))) {
      const path = [...parts, entry.name];
      if (entry.isDirectory()) yield* this.entriesBelow(path);
      else if (entry.isFile() && !entry.name.endsWith(PARTIAL)) {
        const found = await orNull(stat(join(this.root, ...path)));
        if (found) yield { key: path.join('/'), bytes: found.size, modifiedAtMs: found.mtimeMs };
      }
    }
  }

  /** Folders that hold nothing any more would be walked by every later listing. */
  private async removeEmpty(parts: readonly string[]): Promise<void> {
    for (let depth = parts.length; depth > 0; depth--) {
      const folder = join(this.root, ...parts.slice(0, depth));
      try {
        await rmdir(folder);
      } catch {
        return; // something is in it, or somebody else removed it
      }
      this.madeDirectories.delete(folder);
    }
  }

  private pathOf(key: ObjectKey): string {
    return join(this.root, ...keyParts(key));
  }

  private async write(key: ObjectKey, bytes: Uint8Array, place: (partial: string, path: string) => Promise<void>): Promise<void> {
    const path = this.pathOf(key);
    await this.makeDirectory(dirname(path));
    try {
      await placeWhole(path, bytes, place);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      this.madeDirectories.clear(); // somebody removed the folder under us
      await this.makeDirectory(dirname(path));
      await placeWhole(path, bytes, place);
    }
  }

  private async makeDirectory(path: string): Promise<void> {
    if (this.madeDirectories.has(path)) return;
    await mkdir(path, { recursive: true });
    this.madeDirectories.add(path);
  }
}

async function placeWhole(path: string, bytes: Uint8Array, place: (partial: string, path: string) => Promise<void>): Promise<void> {
  const partial = `${path}.${randomUUID()}${PARTIAL}`;
  try {
    const file = await open(partial, 'wx');
    try {
      await file.writeFile(bytes);
      await file.datasync();
    } finally {
      await file.close();
    }
    await place(partial, path);
    await flushFolder(dirname(path));
  } finally {
    await rm(partial, { force: true });
  }
}

/** What was just put into a folder is in it also after a power cut. */
async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error; // a file system that flushes no folders
  } finally {
    await folder.close();
  }
}

async function orNull<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
}
