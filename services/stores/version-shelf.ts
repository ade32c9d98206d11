import type { VersionIndex } from './version-index.ts';

/** What a shelf has of one name. */
export type ShelfLook = {
  /** Versions that are whole. */
  readonly versions: readonly number[];
  /** Numbers that are given out, with those of versions that are not whole yet. */
  readonly taken: readonly number[];
  readonly index: VersionIndex;
  /** Which index that is; a new one takes its place only as long as it is still that one. */
  readonly indexNumber: number;
};

/** Where numbered versions of named things lie. What must happen once is decided here: a number has one owner, an index one successor. */
export interface VersionShelf {
  /** Names that may have something. */
  names(): Promise<string[]>;
  /** @throws StoreDamaged for an index that does not read */
  look(name: string): Promise<ShelfLook>;
  /** The number, whole or not, that was taken with this key. */
  takenWith(name: string, key: string): Promise<number | null>;
  /** Makes a version, whole or not at all; false when another key has its number. */
  place(name: string, version: number, key: string, files: Readonly<Record<string, string>>): Promise<boolean>;
  /** Replaces the index that was looked at; false when another one did. */
  replaceIndex(name: string, seen: ShelfLook, index: VersionIndex): Promise<boolean>;
  read(name: string, version: number, file: string): Promise<string>;
  /** Where a version is, for people. */
  pathOf(name: string, version: number): string;
}

export const KEY_FILE = 'made-from.txt';
export const INDEX_FILE = 'aliases.toml';
export const versionOf = (folder: string): number | null => (/^v(0|[1-9][0-9]*)$/.test(folder) ? Number(folder.slice(1)) : null);
