import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readIndex, writeIndex } from './version-index.ts';
import { CHAMPION, checkAlias, checkStoreName, isStoreName, resolveVersion, StoreError } from './version-refs.ts';

export type Version = { readonly version: number; readonly path: string };

export type SaveOrder = {
  readonly name: string;
  /** What the version is made from: saving the same key again returns the version that is there, so that a repeated call makes no second. */
  readonly key: string;
  /** The version's files, name → text. */
  readonly files: (version: number) => Readonly<Record<string, string>>;
  /** The alias that moves to the new version; null moves none. */
  readonly alias?: string | null;
};

/**
 * Numbered versions of named things below `root`: `<name>/vN/` never changes once it is there, and a number is never used twice.
 * A version is filled beside its place and renamed. Aliases move: `champion` is what a reference without a version means.
 */
export class VersionStore {
  private readonly root: string;
  private readonly what: string;

  /** `what` is the word for the things kept here, for messages: `adapter`, `harness`. */
  constructor(root: string, what: string) {
    this.root = root;
    this.what = what;
  }

  /** Saves the next version. @throws StoreError for a name or alias that cannot be one */
  async save({ name, key, files, alias = CHAMPION }: SaveOrder): Promise<Version> {
    const folder = this.folderOf(name);
    if (alias !== null) checkAlias(alias);
    await mkdir(folder, { recursive: true });
    const [known, { lastVersion, aliases }, versions] = await Promise.all([madeFrom(folder, key), readIndex(folder), versionsIn(folder)]);
    const version = known ?? Math.max(lastVersion, ...versions, 0) + 1;
    const path = join(folder, `v${version}`);
    if (known === null) await fill(path, { ...files(version), 'made-from.txt': `${key}\n` });
    const moved = alias === null ? aliases : new Map(aliases).set(alias, version);
    await writeIndex(folder, { lastVersion: Math.max(lastVersion, version), aliases: moved });
    return { version, path };
  }

  /** The version that `ref` (`vN`, `N` or an alias; null: the champion, else the newest) means. @throws StoreError when there is none */
  async resolve(name: string, ref: string | null): Promise<Version> {
    const folder = this.folderOf(name);
    const [{ aliases }, versions] = await Promise.all([readIndex(folder), versionsIn(folder)]);
    const version = resolveVersion(`${this.what} ${name}`, ref, { versions, aliases });
    return { version, path: join(folder, `v${version}`) };
  }

  /** Moves an alias; going back to an older version is moving `champion`. @throws StoreError for a version that is not there */
  async setAlias(name: string, alias: string, version: number): Promise<void> {
    const folder = this.folderOf(name);
    checkAlias(alias);
    const [index, versions] = await Promise.all([readIndex(folder), versionsIn(folder)]);
    if (!versions.includes(version)) throw new StoreError('no_such_version', `${this.what} ${name} has no version ${version}`);
    await writeIndex(folder, {
      lastVersion: Math.max(index.lastVersion, ...versions),
      aliases: new Map(index.aliases).set(alias, version),
    });
  }

  async aliases(name: string): Promise<ReadonlyMap<string, number>> {
    return (await readIndex(this.folderOf(name))).aliases;
  }

  /** The names that have a version, sorted. */
  async names(): Promise<string[]> {
    const found = (await entriesOf(this.root)).filter(isStoreName).sort();
    const versions = await Promise.all(found.map((name) => versionsIn(join(this.root, name))));
    return found.filter((_, i) => versions[i]?.length);
  }

  private folderOf(name: string): string {
    checkStoreName(name, this.what);
    return join(this.root, name);
  }
}

async function versionsIn(folder: string): Promise<number[]> {
  return (await entriesOf(folder)).flatMap((name) => (/^v(0|[1-9][0-9]*)$/.test(name) ? [Number(name.slice(1))] : []));
}

/** Names in a folder; none when there is no folder. */
async function entriesOf(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
}

async function madeFrom(folder: string, key: string): Promise<number | null> {
  for (const version of await versionsIn(folder)) {
    const found = await readFile(join(folder, `v${version}`, 'made-from.txt'), 'utf8').catch(() => '');
    if (found.trim() === key) return version;
  }
  return null;
}

async function fill(path: string, files: Readonly<Record<string, string>>): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  await mkdir(partial);
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(partial, name), text);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}
