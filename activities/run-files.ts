import type { ObjectStore } from '../services/blobs/object-store.ts';
import { filesOf } from '../services/blobs/run-keys.ts';
import { LineMirror } from './line-mirror.ts';
import { jsonText, RunFolder } from './run-folder.ts';
import { RunRows } from './run-rows.ts';

/** Tables of a run, and the file of lines that mirrors each. */
const TABLES = {
  rows: { file: 'metrics.jsonl', lineOf: (value: unknown) => (value as { row: unknown }).row },
  'warmup-rows': { file: 'warmup.jsonl', lineOf: (value: unknown) => value },
} as const;
export type Table = keyof typeof TABLES;

/** What a run's files need to know of it. */
export type RunPlace = { readonly runId: string; readonly runDir: string };

/**
 * The files and rows of one run. They are kept in the store; the folder on this worker's disk mirrors them for people. Work of a run is
 * spread over workers, so each one's folder holds what it wrote itself, until `mirror` completes it.
 */
export class RunFiles {
  private readonly objects: ObjectStore;
  private readonly runId: string;
  private readonly folder: RunFolder;
  private readonly lines: LineMirror;

  constructor(objects: ObjectStore, runId: string, folder: RunFolder, lines: LineMirror) {
    this.objects = objects;
    this.runId = runId;
    this.folder = folder;
    this.lines = lines;
  }

  get path(): string {
    return this.folder.path;
  }

  /** Writes a file whole or not at all. */
  async write(name: string, text: string): Promise<void> {
    await this.objects.put(`${this.prefix}${name}`, new TextEncoder().encode(text));
    await this.folder.write(name, text);
  }

  async writeJson(name: string, value: unknown): Promise<void> {
    await this.write(name, jsonText(value));
  }

  /** The row of a table that an order asks for (see `RunRows.keep`), and the table's file brought up to date. */
  async keepRow<T>(table: Table, place: number, order: unknown, make: () => Promise<T>): Promise<T> {
    const row = await this.rows(table).keep(place, order, make);
    await this.mirrorRows(table);
    return row;
  }

  /** Brings the folder up to date with all that the run has kept, whichever worker wrote it. Fails for a folder that another run has here. */
  async mirror(): Promise<void> {
    const holder = runIn(await this.folder.read('run.json'));
    if (holder !== null && holder !== this.runId) throw new Error(`${this.path} on this worker belongs to run ${holder}`);
    for (const table of Object.keys(TABLES) as Table[]) await this.mirrorRows(table);
    for await (const { key } of this.objects.list(this.prefix)) {
      const name = key.slice(this.prefix.length);
      const bytes = await this.objects.get(key);
      if (bytes === null) continue;
      const text = new TextDecoder().decode(bytes);
      if ((await this.folder.read(name)) !== text) await this.folder.write(name, text);
    }
  }

  private async mirrorRows(table: Table): Promise<void> {
    const { file, lineOf } = TABLES[table];
    const rows = this.rows(table);
    const keys = await rows.keys();
    if (keys.length === 0) return;
    await this.lines.update(this.folder, file, keys, async (keys) =>
      (await rows.values(keys)).map((value) => JSON.stringify(lineOf(value))),
    );
  }

  private rows(table: Table): RunRows {
    return new RunRows(this.objects, this.runId, table);
  }

  private get prefix(): string {
    return filesOf(this.runId);
  }
}

/** The run that a folder's `run.json` names; null where it names none. */
function runIn(text: string | null): string | null {
  try {
    return text === null ? null : ((JSON.parse(text) as { runId?: string } | null)?.runId ?? null);
  } catch {
    return null;
  }
}

/** The files of each run, on a worker whose project is at `projectRoot`. */
export function runFiles(objects: ObjectStore, projectRoot: string): (run: RunPlace) => RunFiles {
  const lines = new LineMirror();
  return ({ runId, runDir }) => new RunFiles(objects, runId, new RunFolder(projectRoot, runDir), lines);
}
