import { keyParts, type ObjectEntry, type ObjectStore, prefixParts } from '../object-store.ts';

/** For tests: objects in memory, whose operations are ordinary properties, to be replaced. They take the names that a store takes, and no others. */
export class MemoryObjects implements ObjectStore {
  readonly kept = new Map<string, Uint8Array>();

  get: ObjectStore['get'] = async (key) => this.kept.get(key) ?? null;
  has: ObjectStore['has'] = async (key) => this.kept.has(key);
  put: ObjectStore['put'] = async (key, bytes) => void this.kept.set(checked(key), bytes);
  create: ObjectStore['create'] = async (key, bytes) => {
    if (this.kept.has(key)) return false;
    this.kept.set(checked(key), bytes);
    return true;
  };
  delete: ObjectStore['delete'] = async (key) => void this.kept.delete(key);
  list: ObjectStore['list'] = (prefix) => this.entries(prefix);

  private async *entries(prefix: string): AsyncIterable<ObjectEntry> {
    prefixParts(prefix);
    for (const [key, bytes] of [...this.kept].sort(([a], [b]) => (a < b ? -1 : 1)))
      if (key.startsWith(prefix)) yield { key, bytes: bytes.length, modifiedAtMs: 0 };
  }
}

const checked = (key: string): string => keyParts(key).join('/');
