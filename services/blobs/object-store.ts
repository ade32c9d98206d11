/** A name below which bytes are kept: parts of letters, digits and `. _ : @ -`, joined by slashes; no part is `.` or `..`. */
export type ObjectKey = string;

export type ObjectEntry = { readonly key: ObjectKey; readonly bytes: number; readonly modifiedAtMs: number };

/**
 * Named bytes, on the disk of one machine or in a bucket that several share. A write is whole or absent, durable when it returns,
 * and seen by the next read. Nothing is ever changed in place: what must not be overwritten is written with `create`.
 */
export interface ObjectStore {
  /** Null where nothing is kept under the name. */
  get(key: ObjectKey): Promise<Uint8Array | null>;
  has(key: ObjectKey): Promise<boolean>;
  put(key: ObjectKey, bytes: Uint8Array): Promise<void>;
  /** Writes only where nothing is kept yet; of several writers exactly one is told true. */
  create(key: ObjectKey, bytes: Uint8Array): Promise<boolean>;
  /** Removing what is not there is no error. */
  delete(key: ObjectKey): Promise<void>;
  /** What is kept below a prefix, which ends in a slash or is empty; in the order of the keys. */
  list(prefix: string): AsyncIterable<ObjectEntry>;
}

/** What is kept below a prefix, at once: for what is known to be few. */
export async function listed(objects: ObjectStore, prefix: string): Promise<ObjectEntry[]> {
  const entries: ObjectEntry[] = [];
  for await (const entry of objects.list(prefix)) entries.push(entry);
  return entries;
}

/** The store cannot be used as it is set up: no such bucket, no right to write, no server. */
export class ObjectStoreUnusable extends Error {
  readonly exitCode = 2;
  override readonly name = 'ObjectStoreUnusable';
}

/** Keeps bytes under a name for good; false where other bytes have it. A try that was repeated after it brought no answer is told true. */
export async function createOrFind(objects: ObjectStore, key: ObjectKey, bytes: Uint8Array): Promise<boolean> {
  if (await objects.create(key, bytes)) return true;
  const found = await objects.get(key);
  return found !== null && Buffer.compare(found, bytes) === 0;
}

/** A key or prefix that no store takes. */
export class BadObjectKey extends Error {
  override readonly name = 'BadObjectKey';
  constructor(key: string) {
    super(`${JSON.stringify(key)} is no key of the store: use parts of letters, digits and . _ : @ - joined by slashes`);
  }
}

const PART = /^(?!\.{1,2}$)[A-Za-z0-9._:@-]+$/;

/** The parts of a key. @throws BadObjectKey */
export function keyParts(key: ObjectKey): string[] {
  const parts = key.split('/');
  if (!parts.every((part) => PART.test(part))) throw new BadObjectKey(key);
  return parts;
}

/** The parts of a prefix. @throws BadObjectKey when it is neither empty nor ends in a slash */
export function prefixParts(prefix: string): string[] {
  if (prefix === '') return [];
  if (!prefix.endsWith('/')) throw new BadObjectKey(prefix);
  return keyParts(prefix.slice(0, -1));
}
