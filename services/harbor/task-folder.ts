import { createHash } from 'node:crypto';
import { readdir, readFile, readlink, stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { BadHarborInput } from './errors.ts';

const NEEDED_FILES = ['task.toml', 'instruction.md', 'tests/test.sh'] as const;
const IGNORED_NAMES = new Set(['.DS_Store', '.git', '__pycache__']);
/** What a model can see of a task or is graded by; task.toml is left out, it carries the task's name. */
const CONTENT_PARTS = ['environment', 'instruction.md', 'tests'] as const;

/** A harbor task on disk that has everything a trial needs. */
export type TaskFolder = { readonly id: string; readonly dir: string };

/** Checks that a folder is a harbor task with tests. Throws `BadHarborInput` naming the file that is missing. */
export async function openTaskFolder(dir: string): Promise<TaskFolder> {
  const folder = resolve(dir);
  if (!(await isKind(folder, 'dir'))) throw new BadHarborInput(`task folder ${folder} does not exist`);
  for (const name of NEEDED_FILES) {
    if (!(await isKind(join(folder, name), 'file'))) {
      throw new BadHarborInput(`task folder ${folder} has no ${name}; a harbor task needs ${NEEDED_FILES.join(', ')}`);
    }
  }
  return { id: basename(folder), dir: folder };
}

/** `sha256:<hex>` over every file's relative path and bytes: changes when anything in the task changes. */
export async function taskDigest(dir: string): Promise<string> {
  return digest(dir, await filesBelow(dir, ''));
}

/** `sha256:<hex>` over instruction, environment and tests only: equal for the same task under another name. */
export async function taskContentDigest(dir: string): Promise<string> {
  const files: string[] = [];
  for (const part of CONTENT_PARTS) {
    if (await isKind(join(dir, part), 'file')) files.push(part);
    else if (await isKind(join(dir, part), 'dir')) files.push(...(await filesBelow(dir, part)));
  }
  return digest(dir, files);
}

/** Paths relative to `top`, with forward slashes, of everything below `top/under` that is not a directory. */
async function filesBelow(top: string, under: string): Promise<string[]> {
  const files: string[] = [];
  for (const entry of await readdir(join(top, under), { withFileTypes: true })) {
    if (IGNORED_NAMES.has(entry.name)) continue;
    const path = under === '' ? entry.name : `${under}/${entry.name}`;
    if (entry.isDirectory()) files.push(...(await filesBelow(top, path)));
    else files.push(path);
  }
  return files;
}

async function digest(top: string, files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const path of [...files].sort()) {
    const bytes = await contentOf(join(top, path));
    // Lengths make the stream unambiguous: no two folders can give the same bytes.
    hash.update(`${Buffer.byteLength(path)} ${path} ${bytes.length}\n`).update(bytes);
  }
  return `sha256:${hash.digest('hex')}`;
}

async function contentOf(path: string): Promise<Buffer> {
  try {
    return Buffer.from(`link ${await readlink(path)}`);
  } catch {
    return readFile(path);
  }
}

async function isKind(path: string, kind: 'file' | 'dir'): Promise<boolean> {
  try {
    const found = await stat(path);
    return kind === 'file' ? found.isFile() : found.isDirectory();
  } catch {
    return false;
  }
}
