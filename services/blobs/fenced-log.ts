import { createHash } from 'node:crypto';
import { createOrFind, listed, type ObjectStore } from './object-store.ts';

/** A write to a log that somebody else has taken over: whoever wrote it must stop, its work goes on elsewhere. */
export class StaleAttempt extends Error {
  override readonly name = 'StaleAttempt';
  constructor(what: string) {
    super(`a newer attempt has taken over ${what}: nothing more of this one is recorded`);
  }
}

/** An entry that is not what was written there: other bytes, or none. */
export class EntryDamaged extends Error {
  override readonly name = 'EntryDamaged';
  constructor(key: string, what: string) {
    super(`${key} in the blob store ${what}. Restore it from a copy`);
  }
}

/** Entries above it would not sort by their names any more. */
const MOST_ENTRIES = 1_000_000;
const DIGITS = String(MOST_ENTRIES).length - 1;

/**
 * A list of entries that only grows, one object each, of which one writer at a time is the owner. Whoever opens it reads what is there
 * and takes it over with an entry of its own; since no entry is ever written twice, the owner before meets that entry where it would
 * write next, and is refused. So there is one order of entries for all, and nothing is added behind a new owner's back.
 * An entry begins with the checksum of its bytes.
 */
export class FencedLog {
  private readonly objects: ObjectStore;
  private readonly prefix: string;
  private next = 0;
  private lost: StaleAttempt | null = null;
  private tail: Promise<unknown> = Promise.resolve();

  /** `prefix` is the log's own and ends in a slash. */
  constructor(objects: ObjectStore, prefix: string) {
    this.objects = objects;
    this.prefix = prefix;
  }

  /**
   * Takes the log over and returns what it held, the new entry not among it. `claim` makes that entry, no two alike, from what it finds;
   * what it throws leaves the log as it was. @throws EntryDamaged
   */
  async open(claim: (entries: readonly Uint8Array[]) => Uint8Array): Promise<readonly Uint8Array[]> {
    let entries: readonly Uint8Array[] = [];
    while (!(await this.place(entries.length, claim(entries)))) entries = await this.read();
    this.next = entries.length + 1;
    return entries;
  }

  /** The place of the new entry. Entries are written in the order of the calls. @throws StaleAttempt */
  append(bytes: Uint8Array): Promise<number> {
    const written = this.tail.then(() => this.write(bytes));
    this.tail = written.catch(() => {});
    return written;
  }

  /** What was refused, once it was. */
  get refusal(): StaleAttempt | null {
    return this.lost;
  }

  private async write(bytes: Uint8Array): Promise<number> {
    if (this.lost) throw this.lost;
    const place = this.next;
    if (!(await this.place(place, bytes))) {
      this.lost = new StaleAttempt(this.prefix);
      throw this.lost;
    }
    this.next++;
    return place;
  }

  /** True when the entry is ours. */
  private async place(place: number, bytes: Uint8Array): Promise<boolean> {
    if (place >= MOST_ENTRIES) throw new Error(`${this.prefix} is full`);
    return createOrFind(this.objects, this.keyOf(place), Buffer.concat([digestOf(bytes), bytes]));
  }

  private async read(): Promise<readonly Uint8Array[]> {
    const known = await listed(this.objects, this.prefix);
    // What is listed late is read all the same: entries follow one another without a gap.
    const entries = await Promise.all(known.map((_, place) => this.objects.get(this.keyOf(place))));
    for (let place = entries.length; entries.at(-1) !== null && place < MOST_ENTRIES; place++)
      entries.push(await this.objects.get(this.keyOf(place)));
    const end = entries.indexOf(null);
    const written = entries.slice(0, end < 0 ? undefined : end).filter((entry) => entry !== null);
    const last =
      known
        .map(({ key }) => key)
        .sort()
        .at(-1) ?? '';
    if (last > this.keyOf(written.length))
      throw new EntryDamaged(this.keyOf(written.length), 'is missing: later entries of its log are there');
    return written.map((sealed, place) => unsealed(this.keyOf(place), sealed));
  }

  private keyOf(place: number): string {
    return `${this.prefix}${String(place).padStart(DIGITS, '0')}`;
  }
}

const DIGEST_BYTES = 32;
const digestOf = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest();

/** The bytes of an entry without their checksum. @throws EntryDamaged */
function unsealed(key: string, sealed: Uint8Array): Uint8Array {
  const bytes = sealed.subarray(DIGEST_BYTES);
  if (Buffer.compare(digestOf(bytes), sealed.subarray(0, DIGEST_BYTES)) !== 0)
    throw new EntryDamaged(key, 'was damaged: it does not match its own checksum');
  return bytes;
}
