import { readFile, stat } from 'node:fs/promises';

/** A run's input is one Temporal payload, which may have 2 MiB: these three files together stay well below. */
export const MAX_INPUT_FILE_BYTES = 512 * 1024;

export type ReadFile = { readonly text: string } | { readonly problem: string };

/** Reads an input file as UTF-8 text; `option` says in messages who named it. */
export async function readInputFile(path: string, option: string): Promise<ReadFile> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => error);
  if (found instanceof Error)
    return { problem: `${option} ${path}: ${found.code === 'ENOENT' ? 'there is no such file' : `cannot be read: ${found.message}`}` };
  if (!found.isFile()) return { problem: `${option} ${path}: is not a file` };
  if (found.size > MAX_INPUT_FILE_BYTES)
    return { problem: `${option} ${path}: has ${found.size} bytes; at most ${MAX_INPUT_FILE_BYTES} fit into a run's input` };
  try {
    return { text: await readFile(path, 'utf8') };
  } catch (error) {
    return { problem: `${option} ${path}: cannot be read: ${(error as Error).message}` };
  }
}
