import type { ObjectStore } from '../blobs/object-store.ts';
import { indexText, readIndexText, type VersionIndex } from './version-index.ts';
import { KEY_FILE, type ShelfLook, type VersionShelf, versionOf } from './version-shelf.ts';

/** Written last: a version with it is whole. */
const WHOLE_FILE = 'whole';
const NO_INDEX: VersionIndex = { lastVersion: 0, aliases: new Map() };

/**
 * Versions as objects, for several machines: `<shelf>/<name>/vN/<file>`, and the index as a sequence of which the last one holds,
 * `<shelf>/<name>/aliases/<number>.toml`. Numbers and indexes are created, never replaced, so that of several writers one is told that
 * it did. A version whose writer died is completed when the same key is saved again; until then its number is taken and nobody sees it.
 */
export class ObjectShelf implements VersionShelf {
  private readonly objects: ObjectStore;
  private readonly shelf: string;
  private readonly where: string;

  /** `where` is how people name the store, ending in a slash. */
  constructor(objects: ObjectStore, shelf: string, where: string) {
    this.objects = objects;
    this.shelf = shelf;
    this.where = where;
  }

  async names(): Promise<string[]> {
    const names = new Set<string>();
    for await (const { key } of this.objects.list(`${this.shelf}/`)) names.add(key.split('/')[1] ?? '');
    return [...names];
  }

  async look(name: string): Promise<ShelfLook> {
    const [versions, taken]: [number[], number[]] = [[], []];
    let indexKey: string | null = null;
    for await (const { key } of this.objects.list(`${this.shelf}/${name}/`)) {
      const [, , folder = '', file] = key.split('/');
      const version = versionOf(folder);
      if (folder === 'aliases') indexKey = key;
      else if (version !== null && file === KEY_FILE) taken.push(version);
      else if (version !== null && file === WHOLE_FILE) versions.push(version);
    }
    const index = indexKey === null ? NO_INDEX : readIndexText(`${this.where}${indexKey}`, await this.text(indexKey));
    return { versions, taken, index, indexNumber: indexKey === null ? 0 : Number.parseInt(indexKey.split('/')[3] ?? '', 10) };
  }

  async takenWith(name: string, key: string): Promise<number | null> {
    for (const version of (await this.look(name)).taken)
      if ((await this.text(this.keyOf(name, version, KEY_FILE))).trim() === key) return version;
    return null;
  }

  async place(name: string, version: number, key: string, files: Readonly<Record<string, string>>): Promise<boolean> {
    const keyFile = this.keyOf(name, version, KEY_FILE);
    const ours = await this.objects.create(keyFile, bytes(`${key}\n`));
    if (!ours && (await this.text(keyFile)).trim() !== key) return false;
    for (const [file, text] of Object.entries(files)) await this.objects.put(this.keyOf(name, version, file), bytes(text));
    await this.objects.create(this.keyOf(name, version, WHOLE_FILE), bytes(''));
    return true;
  }

  replaceIndex(name: string, { indexNumber }: ShelfLook, index: VersionIndex): Promise<boolean> {
    const next = `${String(indexNumber + 1).padStart(6, '0')}.toml`;
    return this.objects.create(`${this.shelf}/${name}/aliases/${next}`, bytes(indexText(index)));
  }

  read(name: string, version: number, file: string): Promise<string> {
    return this.text(this.keyOf(name, version, file));
  }

  pathOf(name: string, version: number): string {
    return `${this.where}${this.shelf}/${name}/v${version}`;
  }

  private keyOf(name: string, version: number, file: string): string {
    return `${this.shelf}/${name}/v${version}/${file}`;
  }

  private async text(key: string): Promise<string> {
    const found = await this.objects.get(key);
    if (found === null) throw new Error(`${this.where}${key} is not there`);
    return new TextDecoder().decode(found);
  }
}

const bytes = (text: string) => new TextEncoder().encode(text);
