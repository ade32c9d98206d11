import type { ObjectEntry, ObjectKey, ObjectStore } from '../../../services/blobs/object-store.ts';

/** A store that counts what is written to it and read from it. */
export class CountingStore implements ObjectStore {
  puts = 0;
  putBytes = 0;
  gets = 0;
  private readonly inner: ObjectStore;

  constructor(inner: ObjectStore) {
    this.inner = inner;
  }

  get(key: ObjectKey): Promise<Uint8Array | null> {
    this.gets++;
    return this.inner.get(key);
  }

  has(key: ObjectKey): Promise<boolean> {
    return this.inner.has(key);
  }

  put(key: ObjectKey, bytes: Uint8Array): Promise<void> {
    this.puts++;
    this.putBytes += bytes.length;
    return this.inner.put(key, bytes);
  }

  create(key: ObjectKey, bytes: Uint8Array): Promise<boolean> {
    this.puts++;
    this.putBytes += bytes.length;
    return this.inner.create(key, bytes);
  }

  delete(key: ObjectKey): Promise<void> {
    return this.inner.delete(key);
  }

  list(prefix: string): AsyncIterable<ObjectEntry> {
    return this.inner.list(prefix);
  }
}
