import { z } from 'zod';
import type { StatePath } from '../../core/ids.ts';
import type { SavedState } from '../../core/training/saved-state.ts';
import { getObjectJson } from './object-json.ts';
import { listed, type ObjectStore } from './object-store.ts';
import { placeOf } from './run-keys.ts';

const Line: z.ZodType<SavedState> = z.strictObject({
  name: z.string(),
  path: z.string().transform((path) => path as StatePath),
  updates: z.int(),
  savedAtMs: z.number(),
});

/** The log of the training states that a run saved, `runs/<run>/states/<number>`: for those who go on from one when nobody can ask the run. */
export class SavedStates {
  private readonly objects: ObjectStore;
  private readonly prefix: string;

  constructor(objects: ObjectStore, runId: string) {
    this.objects = objects;
    this.prefix = `${placeOf(runId)}states/`;
  }

  /** Enters a state behind the others; one that stands there last already is not entered again. */
  async note(state: SavedState): Promise<void> {
    const bytes = new TextEncoder().encode(JSON.stringify(state));
    const keys = await this.keys();
    const last = keys.at(-1);
    if (last !== undefined && (await this.read(last)).path === state.path) return;
    for (let place = keys.length; ; place++) if (await this.objects.create(this.keyOf(place), bytes)) return;
  }

  /** In the order they were saved. */
  async all(): Promise<SavedState[]> {
    const keys = await this.keys();
    return Promise.all(keys.map((key) => this.read(key)));
  }

  private async keys(): Promise<string[]> {
    return (await listed(this.objects, this.prefix)).map(({ key }) => key);
  }

  private async read(key: string): Promise<SavedState> {
    const state = await getObjectJson(this.objects, key, Line);
    if (state === null) throw new Error(`${key} was removed from the store while it was read`);
    return state;
  }

  private keyOf(place: number): string {
    return `${this.prefix}${String(place).padStart(6, '0')}`;
  }
}
