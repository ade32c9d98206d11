import pLimit from 'p-limit';
import { z } from 'zod';
import { getObjectJson } from '../services/blobs/object-json.ts';
import type { ObjectStore } from '../services/blobs/object-store.ts';
import { placeOf } from '../services/blobs/run-keys.ts';
import { sha256 } from './digest.ts';

/** Rows that are read at once. */
const READERS = 8;

/** A row's object: `branch` counts how often the rows from some place on were made anew, as after a reset of the run. */
type Kept = { readonly key: string; readonly place: number; readonly branch: number };
const Row = z.strictObject({ order: z.string(), value: z.unknown() });
type Row = z.infer<typeof Row>;

/**
 * One table of a run, each row kept once in the store as `<table>/<place>/<branch>`. Work that is repeated for the same order finds its
 * row; work for another order at the same place begins a new branch, and rows of later places that came before it count no more.
 */
export class RunRows {
  private readonly objects: ObjectStore;
  private readonly prefix: string;

  constructor(objects: ObjectStore, runId: string, table: string) {
    this.objects = objects;
    this.prefix = `${placeOf(runId)}${table}/`;
  }

  /** The row at a place (from 1) that `order` asks for; made by `make` the first time. The order is whatever tells two requests apart, as JSON. */
  async keep<T>(place: number, order: unknown, make: () => Promise<T>): Promise<T> {
    const digest = sha256(JSON.stringify(order));
    let made: { value: T } | null = null;
    for (;;) {
      const kept = await this.kept();
      const last = kept.findLast((row) => row.place === place);
      const found = last && (await this.read(last));
      if (found?.order === digest) return found.value as T;
      made ??= { value: await make() };
      const newest = Math.max(1, ...kept.map(({ branch }) => branch));
      const branch = kept.some((row) => row.place >= place) ? newest + 1 : newest;
      const row: Row = { order: digest, value: made.value };
      if (await this.objects.create(this.keyOf(place, branch), new TextEncoder().encode(JSON.stringify(row)))) return made.value;
    }
  }

  /** Keys of the rows that count, by place. */
  async keys(): Promise<string[]> {
    const newest = new Map((await this.kept()).map((row) => [row.place, row]));
    let branch = 0;
    return [...newest.values()].flatMap((row) => {
      if (row.branch < branch) return [];
      branch = row.branch;
      return [row.key];
    });
  }

  /** The values at these keys. */
  values(keys: readonly string[]): Promise<unknown[]> {
    return pLimit(READERS).map(keys, async (key) => (await this.read({ key })).value);
  }

  private async kept(): Promise<Kept[]> {
    const kept: Kept[] = [];
    for await (const { key } of this.objects.list(this.prefix)) {
      const [place, branch] = key.slice(this.prefix.length).split('/');
      kept.push({ key, place: Number(place), branch: Number(branch) });
    }
    return kept.sort((a, b) => a.place - b.place || a.branch - b.branch);
  }

  private async read({ key }: Pick<Kept, 'key'>): Promise<Row> {
    const row = await getObjectJson(this.objects, key, Row);
    if (row === null) throw new Error(`${key} was removed from the store while it was read`);
    return row;
  }

  private keyOf(place: number, branch: number): string {
    return `${this.prefix}${String(place).padStart(6, '0')}/${String(branch).padStart(4, '0')}`;
  }
}
