import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';

/** A regular file below the folder: its path there, with forward slashes, and the file itself, open for reading. */
export type FoundFile = { readonly path: string; readonly size: number; readonly file: FileHandle };

export type Walk = {
  /** Entries that are looked at; a folder may hold any number. */
  readonly maxEntries: number;
  /** Called for each file, in the order of their names, files of a folder before those below it; the file is closed afterwards. */
  readonly onFile: (found: FoundFile) => Promise<void>;
};

const { O_RDONLY, O_NOFOLLOW, O_DIRECTORY, O_NONBLOCK } = constants;
const MAX_DEPTH = 16;

/**
 * Looks at every regular file below `dir`, whose content hostile programs may have made, and may still be changing: no link is followed,
 * neither in the end nor on the way (Linux; elsewhere not in the end), and no pipe or device is opened for longer than a look. Returns how
 * many entries were left out, being something else, unreadable or too many.
 */
export async function walkFiles(dir: string, { maxEntries, onFile }: Walk): Promise<number> {
  let seen = 0;
  let leftOut = 0;
  const visit = async (opened: FileHandle, name: string, at: string, depth: number): Promise<void> => {
    const here = through(opened, name);
    const entries = (await readdir(here, { withFileTypes: true })).sort(
      (a, b) => Number(a.isDirectory()) - Number(b.isDirectory()) || (a.name < b.name ? -1 : 1),
    );
    for (const entry of entries) {
      if (++seen > maxEntries || depth > MAX_DEPTH || !(entry.isFile() || entry.isDirectory())) {
        leftOut++;
        continue;
      }
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      try {
        await using file = await open(`${here}/${entry.name}`, O_RDONLY | O_NOFOLLOW | (entry.isDirectory() ? O_DIRECTORY : O_NONBLOCK));
        const stat = await file.stat();
        if (stat.isDirectory()) await visit(file, `${name}/${entry.name}`, path, depth + 1);
        else if (stat.isFile()) await onFile({ path, size: stat.size, file });
        else leftOut++;
      } catch {
        leftOut++;
      }
    }
  };
  await using top = await open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  await visit(top, dir, '', 0);
  return leftOut;
}

/** One file below `dir` in the same way; null where it is no regular file, or larger than `maxBytes`. */
export async function readInside(dir: string, path: string, maxBytes: number): Promise<Buffer | null> {
  const names = path.split('/');
  const last = names.pop() ?? '';
  const opened: FileHandle[] = [];
  try {
    let [here, named] = [dir, dir];
    for (const name of [null, ...names]) {
      if (name !== null) [here, named] = [`${here}/${name}`, `${named}/${name}`];
      const folder = await open(here, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      opened.push(folder);
      here = through(folder, named);
    }
    const file = await open(`${here}/${last}`, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    opened.push(file);
    const stat = await file.stat();
    return stat.isFile() && stat.size <= maxBytes ? await readUpTo(file, 0, stat.size) : null;
  } catch {
    return null;
  } finally {
    for (const each of opened) await each.close();
  }
}

/** The path of an open folder itself: what its name leads to may be another one by now. */
const through = (folder: FileHandle, name: string) => (process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : name);

/** Bytes of a file from a place on; fewer where it ends before. */
export async function readUpTo(file: FileHandle, from: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  let filled = 0;
  while (filled < bytes) {
    const { bytesRead } = await file.read(buffer, filled, bytes - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
