import { type Attempt, type Generation, isSuperseded, JournalEntry, type Standing, standingOf } from '../core/training/journal.ts';
import type { JournalPlace } from '../core/training/plan.ts';
import { StaleAttempt } from '../services/blobs/fenced-log.ts';
import { getObjectJson } from '../services/blobs/object-json.ts';
import { createOrFind, type ObjectStore } from '../services/blobs/object-store.ts';
import { placeOf } from '../services/blobs/run-keys.ts';

/** An entry before its author is put to it. */
export type Written = JournalEntry extends infer Entry ? (Entry extends JournalEntry ? Omit<Entry, 'by'> : never) : never;

const folderOf = (runId: string, generation: number) => `${placeOf(runId)}training/g${String(generation).padStart(4, '0')}`;
const keyOf = (runId: string, generation: number, entry: number) => `${folderOf(runId, generation)}/${String(entry).padStart(6, '0')}`;

/**
 * The write-ahead journal of a run's training: for each generation a row of objects, each written once, so that of two attempts that
 * write the same entry one is refused. An attempt first takes over; whoever wrote before then finds its next entry taken.
 */
export class TrainingJournal {
  readonly #objects: ObjectStore;
  readonly #runId: string;
  readonly #by: Attempt;
  readonly #generations: { readonly number: number; readonly entries: JournalEntry[]; next: number }[] = [];

  private constructor(objects: ObjectStore, runId: string, by: Attempt) {
    this.#objects = objects;
    this.#runId = runId;
    this.#by = by;
  }

  /**
   * Reads what was written after `at` (null: everything), and takes over. @throws StaleAttempt when a later attempt at the same
   * activity was here
   */
  static async takeOver(objects: ObjectStore, runId: string, by: Attempt, at: JournalPlace | null): Promise<TrainingJournal> {
    const journal = new TrainingJournal(objects, runId, by);
    let number = at?.generation ?? 1;
    await journal.#read(number, at?.entry ?? 0);
    while (await objects.has(keyOf(runId, number + 1, 0))) await journal.#read(++number, 0);
    if (isSuperseded(journal.generations, by)) throw journal.#stale();
    const isNew = number === 1 && journal.#newest.next === 0;
    await journal.write(isNew ? { is: 'open', cause: null } : { is: 'takeover' });
    return journal;
  }

  /** What was read and written, generation by generation. */
  get generations(): readonly Generation[] {
    return this.#generations;
  }

  get standing(): Standing {
    return standingOf(this.#newest);
  }

  /** The newest generation, and its first entry that is not written. */
  get place(): Pick<JournalPlace, 'generation' | 'entry'> {
    return { generation: this.#newest.number, entry: this.#newest.next };
  }

  /** Durable when it returns. @throws StaleAttempt when another attempt has written there */
  async write(written: Written): Promise<void> {
    const newest = this.#newest;
    const entry = { ...written, by: this.#by } as JournalEntry;
    const bytes = new TextEncoder().encode(JSON.stringify(entry));
    const key = keyOf(this.#runId, newest.number, newest.next);
    if (!(await createOrFind(this.#objects, key, bytes))) throw this.#stale();
    newest.entries.push(JournalEntry.parse(JSON.parse(new TextDecoder().decode(bytes))));
    newest.next++;
  }

  /** @throws StaleAttempt when another attempt has taken over */
  async assertMine(): Promise<void> {
    if (await this.#objects.has(keyOf(this.#runId, this.#newest.number, this.#newest.next))) throw this.#stale();
  }

  /** Gives the newest generation up, and begins the next. */
  async next(cause: string, { lost = false } = {}): Promise<void> {
    if (this.standing.abandoned === null) await this.write({ is: 'abandoned', cause, lost });
    this.#generations.push({ number: this.#newest.number + 1, entries: [], next: 0 });
    await this.write({ is: 'open', cause });
  }

  get #newest() {
    const newest = this.#generations.at(-1);
    if (!newest) throw new RangeError('a journal that was not read');
    return newest;
  }

  #stale(): StaleAttempt {
    const { activityId, attempt } = this.#by;
    return new StaleAttempt(`the training from attempt ${attempt} at activity ${activityId}`);
  }

  async #read(number: number, from: number): Promise<void> {
    const entries: JournalEntry[] = [];
    for (;;) {
      const entry = await readEntry(this.#objects, this.#runId, number, from + entries.length);
      if (entry === null) break;
      entries.push(entry);
    }
    this.#generations.push({ number, entries, next: from + entries.length });
  }
}

/**
 * The session in which the newest generation's model lives, from generation `from` on; null while it is not opened.
 * For those that keep it alive; they write nothing.
 */
export async function newestSession(objects: ObjectStore, runId: string, from: number) {
  let generation = from;
  while (await objects.has(keyOf(runId, generation + 1, 0))) generation++;
  for (let number = 0; ; number++) {
    const entry = await readEntry(objects, runId, generation, number);
    if (entry === null) return { generation, sessionId: null };
    if (entry.is === 'opened') return { generation, sessionId: entry.sessionId };
  }
}

const readEntry = (objects: ObjectStore, runId: string, generation: number, number: number): Promise<JournalEntry | null> =>
  getObjectJson(objects, keyOf(runId, generation, number), JournalEntry);
