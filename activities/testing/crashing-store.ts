import type { ObjectStore } from '../../services/blobs/object-store.ts';

/** The process has died: it can do nothing more. */
export class Crash extends Error {}

/** A process that dies at its nth write to the journal, before or after it is made. */
export type Death = { readonly write: number; readonly afterIt: boolean };

/** The store as a process sees it that dies so. */
export function dyingAt(objects: ObjectStore, death: Death | undefined): ObjectStore {
  let writes = 0;
  let isDead = false;
  const alive = <T>(work: () => Promise<T>) => (isDead ? Promise.reject(new Crash()) : work());
  return {
    get: (key) => alive(() => objects.get(key)),
    has: (key) => alive(() => objects.has(key)),
    put: (key, bytes) => alive(() => objects.put(key, bytes)),
    delete: (key) => objects.delete(key),
    list: (prefix) => objects.list(prefix),
    create: (key, bytes) =>
      alive(async () => {
        isDead = writes++ === death?.write;
        if (isDead && !death?.afterIt) throw new Crash();
        const made = await objects.create(key, bytes);
        if (isDead) throw new Crash();
        return made;
      }),
  };
}

/** The store as a process sees it that stands still at its nth request, before or after it is carried out, until it may go on. */
export function pausingAt(objects: ObjectStore, at: number, after: boolean, paused: () => void, goOn: Promise<void>): ObjectStore {
  let requests = 0;
  const stand = async () => {
    paused();
    await goOn;
  };
  const slow = async <T>(work: () => Promise<T>) => {
    const isHere = requests++ === at;
    if (isHere && !after) await stand();
    const result = await work();
    if (isHere && after) await stand();
    return result;
  };
  return {
    get: (key) => slow(() => objects.get(key)),
    has: (key) => slow(() => objects.has(key)),
    put: (key, bytes) => slow(() => objects.put(key, bytes)),
    create: (key, bytes) => slow(() => objects.create(key, bytes)),
    delete: (key) => objects.delete(key),
    list: (prefix) => objects.list(prefix),
  };
}

/** Objects in memory, for one process. */
export class MemoryObjects implements ObjectStore {
  readonly #held = new Map<string, Uint8Array>();
  get = async (key: string) => this.#held.get(key) ?? null;
  has = async (key: string) => this.#held.has(key);
  put = async (key: string, bytes: Uint8Array) => void this.#held.set(key, bytes);
  create = async (key: string, bytes: Uint8Array) => !this.#held.has(key) && this.#held.set(key, bytes).has(key);
  delete = async (key: string) => void this.#held.delete(key);

  async *list(prefix: string) {
    for (const [key, { length: bytes }] of this.#held) if (key.startsWith(prefix)) yield { key, bytes, modifiedAtMs: 0 };
  }
}
