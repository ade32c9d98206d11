import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunFolder } from './run-folder.ts';

/** Where a line is kept, in the order of the file. */
type Place = string;
type Left = { readonly places: readonly Place[]; readonly bytes: number };

/**
 * Files of lines that mirror what is kept elsewhere. A file that is as this process left it gets the lines that are new; another one is
 * compared with all of them, completed, or written anew where it says something else.
 */
export class LineMirror {
  private readonly left = new Map<string, Left>();

  /** `lineAt` reads the lines of places, in their order. */
  async update(folder: RunFolder, file: string, places: readonly Place[], lineAt: (places: readonly Place[]) => Promise<string[]>) {
    const path = join(folder.path, file);
    const known = this.left.get(path);
    const since = known && (await sizeOf(path)) === known.bytes && startsWith(places, known.places) ? known.places.length : 0;
    const text = (await lineAt(places.slice(since))).map((line) => `${line}\n`).join('');
    const before = since > 0 ? '' : ((await orNull(readFile(path, 'utf8'))) ?? '');
    if (!text.startsWith(before)) await folder.write(file, text);
    else if (text.length > before.length) await folder.append(file, text.slice(before.length));
    this.left.set(path, { places, bytes: (await sizeOf(path)) ?? 0 });
  }
}

const startsWith = (places: readonly Place[], known: readonly Place[]) => known.every((place, i) => places[i] === place);

const sizeOf = async (path: string) => (await orNull(stat(path)))?.size ?? null;

function orNull<T>(reading: Promise<T>): Promise<T | null> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}
