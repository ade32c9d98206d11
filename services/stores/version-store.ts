import { FolderShelf } from './folder-shelf.ts';
import { CHAMPION, checkAlias, checkStoreName, isStoreName, resolveVersion, StoreError } from './version-refs.ts';
import type { ShelfLook, VersionShelf } from './version-shelf.ts';

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
 * Numbered versions of named things: a version never changes once it is there, and a number is never used twice. Aliases move: `champion`
 * is what a reference without a version means.
 */
export class VersionStore {
  private readonly shelf: VersionShelf;
  private readonly what: string;

  /** On a shelf, or as folders below a path. `what` is the word for the things kept here, for messages: `adapter`, `harness`. */
  constructor(shelf: VersionShelf | string, what: string) {
    this.shelf = typeof shelf === 'string' ? new FolderShelf(shelf) : shelf;
    this.what = what;
  }

  /** Saves the next version. @throws StoreError for a name or alias that cannot be one */
  async save({ name, key, files, alias = CHAMPION }: SaveOrder): Promise<Version> {
    checkStoreName(name, this.what);
    if (alias !== null) checkAlias(alias);
    for (;;) {
      const look = await this.shelf.look(name);
      const known = await this.shelf.takenWith(name, key);
      const version = known ?? Math.max(look.index.lastVersion, ...look.taken, 0) + 1;
      const isWhole = known !== null && look.versions.includes(known);
      if (!isWhole && !(await this.shelf.place(name, version, key, files(version)))) continue;
      if (await this.moveTo(name, look, version, alias)) return { version, path: this.shelf.pathOf(name, version) };
    }
  }

  /** The version that `ref` (`vN`, `N` or an alias; null: the champion, else the newest) means. @throws StoreError when there is none */
  async resolve(name: string, ref: string | null): Promise<Version> {
    const { versions, index } = await this.look(name);
    const version = resolveVersion(`${this.what} ${name}`, ref, { versions, aliases: index.aliases });
    return { version, path: this.shelf.pathOf(name, version) };
  }

  /** Moves an alias; going back to an older version is moving `champion`. @throws StoreError for a version that is not there */
  async setAlias(name: string, alias: string, version: number): Promise<void> {
    checkStoreName(name, this.what);
    checkAlias(alias);
    for (;;) {
      const look = await this.shelf.look(name);
      if (!look.versions.includes(version)) throw new StoreError('no_such_version', `${this.what} ${name} has no version ${version}`);
      if (await this.moveTo(name, look, version, alias)) return;
    }
  }

  /** A file of a version. */
  read(name: string, version: number, file: string): Promise<string> {
    checkStoreName(name, this.what);
    return this.shelf.read(name, version, file);
  }

  /** The numbers of its versions, ascending; none of a name that has none. */
  async numbers(name: string): Promise<number[]> {
    return [...(await this.look(name)).versions].sort((a, b) => a - b);
  }

  async aliases(name: string): Promise<ReadonlyMap<string, number>> {
    return (await this.look(name)).index.aliases;
  }

  /** The names that have a version, sorted. */
  async names(): Promise<string[]> {
    const found = (await this.shelf.names()).filter(isStoreName).sort();
    const looks = await Promise.all(found.map((name) => this.shelf.look(name)));
    return found.filter((_, i) => looks[i]?.versions.length);
  }

  private async look(name: string): Promise<ShelfLook> {
    checkStoreName(name, this.what);
    return this.shelf.look(name);
  }

  /** Writes the index with the alias moved and the number remembered; false when another one wrote it since the look. */
  private moveTo(name: string, look: ShelfLook, version: number, alias: string | null): Promise<boolean> {
    const { aliases, lastVersion } = look.index;
    const moved = alias === null ? aliases : new Map(aliases).set(alias, version);
    return this.shelf.replaceIndex(name, look, { lastVersion: Math.max(lastVersion, ...look.taken, version), aliases: moved });
  }
}
