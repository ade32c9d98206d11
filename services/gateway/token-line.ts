/** Storage that grows at its end: what a line has seen of it never changes. */
type Store = {
  ids: Int32Array;
  used: number;
  /** JSON of the first `jsonIds` ids in its first `jsonLength` bytes, see `json`. */
  json: Buffer;
  jsonLength: number;
  jsonIds: number;
};

const LEAST_CAPACITY_IDS = 1024;

/**
 * Token ids that never change, made from one another by appending. A line and what was appended to it share their memory, so a
 * conversation is held once and not once per turn; only a second, different continuation of the same line copies it.
 */
export class TokenLine {
  /** A view: good for as long as it is held, and not to be written to. */
  readonly ids: Int32Array;
  readonly #store: Store;

  private constructor(store: Store, length: number) {
    this.#store = store;
    this.ids = store.ids.subarray(0, length);
  }

  static of(ids: Int32Array): TokenLine {
    return new TokenLine(copied(ids, ids.length), ids.length);
  }

  get length(): number {
    return this.ids.length;
  }

  /** These ids and then `more`. */
  with(more: Int32Array): TokenLine {
    const end = this.length + more.length;
    if (this.#goesOnWith(more, end)) return new TokenLine(this.#store, end);
    const store = this.#isNewest ? this.#store : copied(this.ids, end);
    // Lines made before keep the old memory; since it doubles, all of it together is no more than the newest.
    if (store.ids.length < end) store.ids = enlarged(store.ids, end);
    store.ids.set(more, this.length);
    store.used = end;
    return new TokenLine(store, end);
  }

  /**
   * The ids as JSON's numbers, comma between them, in ASCII. Kept with the memory that lines share: it is not written anew for each turn, and
   * as bytes it goes out as it is.
   */
  get json(): Uint8Array {
    const store = this.#store;
    if (store.jsonIds > this.length) return Buffer.from(this.ids.join(','), 'latin1');
    if (store.jsonIds < this.length) {
      const added = (store.jsonIds === 0 ? '' : ',') + this.ids.subarray(store.jsonIds).join(',');
      const length = store.jsonLength + added.length;
      if (store.json.length < length) store.json = Buffer.concat([store.json], Math.max(length, store.json.length * 2));
      store.json.write(added, store.jsonLength, 'latin1');
      store.jsonLength = length;
      store.jsonIds = this.length;
    }
    return store.json.subarray(0, store.jsonLength);
  }

  get #isNewest(): boolean {
    return this.#store.used === this.length;
  }

  #goesOnWith(more: Int32Array, end: number): boolean {
    const { ids, used } = this.#store;
    if (used < end) return false;
    for (let index = 0; index < more.length; index++) if (ids[this.length + index] !== more[index]) return false;
    return true;
  }
}

function copied(ids: Int32Array, capacity: number): Store {
  const store = {
    ids: new Int32Array(Math.max(capacity, LEAST_CAPACITY_IDS)),
    used: ids.length,
    json: Buffer.alloc(0),
    jsonLength: 0,
    jsonIds: 0,
  };
  store.ids.set(ids);
  return store;
}

function enlarged(ids: Int32Array, atLeast: number): Int32Array {
  const larger = new Int32Array(Math.max(atLeast, ids.length * 2));
  larger.set(ids);
  return larger;
}
