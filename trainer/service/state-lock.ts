import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StateError } from './failures.ts';

export type StateLock = { readonly close: () => void };

/** SQLite's code for a file that somebody else has locked. */
const BUSY = 5;

/** Held here, too: a lock that nobody refers to any more would be given back when its memory is. */
const held = new Set<DatabaseSync>();

/**
 * Keeps two services from writing into one state folder. The lock is the operating system's, on a file in the folder, taken as SQLite
 * does it everywhere: it ends with its process, however that dies, two that start at once cannot both get it, and it goes where the
 * folder goes. The file stays and holds nothing. Throws StateError when the folder is taken or cannot be locked.
 */
export function lockState(folder: string): StateLock {
  const path = join(folder, 'trainer.lock');
  let file: DatabaseSync | null = null;
  try {
    file = new DatabaseSync(path);
    file.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    file?.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === BUSY) {
      throw new StateError(`--state ${folder}: another trainer is using this folder; stop it or choose another folder`);
    }
    throw new StateError(`--state ${folder}: ${path} cannot be locked (${error instanceof Error ? error.message : String(error)})`);
  }
  const lock = file;
  held.add(lock);
  return {
    close: () => {
      if (held.delete(lock)) lock.close();
    },
  };
}
