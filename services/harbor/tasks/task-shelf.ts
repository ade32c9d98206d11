import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, rmdir, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { taskDigest } from '../task-folder.ts';
import { treeSignature } from './task-tree.ts';

const PARTIAL = '.partial-';
/** No fetch takes so long: what is older was left by a process that died. */
const PARTIAL_LIVES_MS = 2 * 3600_000;
/** A task that nobody opened for so long is removed. */
const UNUSED_DAYS = 30;
const DAY_MS = 24 * 3600_000;
/** How often a task in use is marked as such. */
const TOUCH_EVERY_MS = 3600_000;

/**
 * Whole tasks on this machine, by digest: `<hex>/<folder name>`. A task is made in a folder of its own and put in its place by one rename, so
 * whatever has its name there is whole, however many processes do the same at once, and wherever one of them is killed. What this process
 * took from here is read again only when something about its files changed.
 */
export class TaskShelf {
  readonly dir: string;
  readonly #seen = new Map<string, { readonly signature: string; touchedAtMs: number }>();

  constructor(dir: string) {
    this.dir = dir;
  }

  folderOf(digest: string, name: string): string {
    return join(this.dir, digest.replace(/^sha256:/, ''), name);
  }

  /** The folder of a task, if it is here and is what its digest says; one that was changed is taken away. */
  async get(digest: string, name: string): Promise<string | null> {
    const folder = this.folderOf(digest, name);
    const signature = await treeSignature(folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
    if (signature === null) return null;
    const seen = this.#seen.get(folder);
    if (seen?.signature !== signature && (await taskDigest(folder).catch(() => null)) !== digest) {
      await this.#remove(folder);
      return null;
    }
    await this.#touch(folder, signature, seen?.touchedAtMs ?? 0);
    return folder;
  }

  /** Puts a task that is whole into its place, unless it is there by now. `made` must lie below `scratch`'s folder. */
  async put(made: string, digest: string, name: string): Promise<string> {
    const folder = this.folderOf(digest, name);
    await mkdir(join(folder, '..'), { recursive: true });
    await rename(made, folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') throw error;
    });
    const placed = await this.get(digest, name);
    if (placed === null) throw new Error(`${folder} was changed or removed while it was put there`);
    return placed;
  }

  /** Runs `work` with an empty folder on the shelf's own disk, which is removed afterwards. */
  async scratch<T>(work: (dir: string) => Promise<T>): Promise<T> {
    const dir = join(this.dir, `${PARTIAL}${randomUUID()}`);
    await mkdir(dir, { recursive: true });
    try {
      return await work(dir);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  }

  /** Removes what dead processes left half made, and tasks that nobody used for thirty days. */
  async sweep(nowMs = Date.now()): Promise<void> {
    for (const name of await readdir(this.dir).catch(() => [])) {
      const path = join(this.dir, name);
      if (name.startsWith(PARTIAL)) {
        if (nowMs - (await ageOf(path)) > PARTIAL_LIVES_MS) await rm(path, { recursive: true, force: true });
      } else if (/^[0-9a-f]{64}$/.test(name)) {
        for (const task of await readdir(path)) {
          if (nowMs - (await ageOf(join(path, task))) > UNUSED_DAYS * DAY_MS) await this.#remove(join(path, task));
        }
        await rmdir(path).catch(() => {}); // another task is in it
      }
    }
  }

  async #touch(folder: string, signature: string, touchedAtMs: number): Promise<void> {
    const now = Date.now();
    const isDue = now - touchedAtMs > TOUCH_EVERY_MS;
    // The folder's own time is not part of its signature.
    if (isDue) await utimes(folder, now / 1000, now / 1000);
    this.#seen.set(folder, { signature, touchedAtMs: isDue ? now : touchedAtMs });
  }

  /** Out of sight at once, so that nobody opens half of it. */
  async #remove(folder: string): Promise<void> {
    this.#seen.delete(folder);
    const aside = join(this.dir, `${PARTIAL}${randomUUID()}`);
    await rename(folder, aside).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
    await rm(aside, { recursive: true, force: true });
  }
}

const ageOf = async (path: string) => (await stat(path).catch(() => null))?.mtimeMs ?? Number.POSITIVE_INFINITY;
