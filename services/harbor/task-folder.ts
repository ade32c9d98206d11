import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { parse as parseToml } from 'smol-toml';
import { type TaskTree, taskTree } from './tasks/task-tree.ts';

const NEEDED_FILES = ['task.toml', 'instruction.md', 'tests/test.sh'] as const;
/** What a model can see of a task or is graded by; task.toml is left out, it carries the task's name. */
const CONTENT_PARTS = ['environment', 'instruction.md', 'tests'] as const;

/** Why a folder is no task that a trial can be made of, as `has no …`; null when it is one. */
export async function taskProblem(dir: string): Promise<string | null> {
  if (!(await isKind(dir, 'dir'))) return 'does not exist';
  for (const name of NEEDED_FILES)
    if (!(await isKind(join(dir, name), 'file'))) return `has no ${name}; a harbor task needs ${NEEDED_FILES.join(', ')}`;
  if (await isKind(join(dir, 'environment'), 'dir')) return null;
  try {
    const { environment } = parseToml(await readFile(join(dir, 'task.toml'), 'utf8')) as { environment?: { docker_image?: unknown } };
    return typeof environment?.docker_image === 'string'
      ? null
      : 'has no environment/ folder, and its task.toml names no environment.docker_image';
  } catch (error) {
    return `has a task.toml that is no TOML: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** `sha256:<hex>` over every file's relative path and bytes: changes when anything in the task changes. */
export async function taskDigest(dir: string): Promise<string> {
  return digest((await taskTree(dir)).files);
}

/** `sha256:<hex>` over instruction, environment and tests only: equal for the same task under another name. */
export async function taskContentDigest(dir: string): Promise<string> {
  const files: TaskTree['files'][number][] = [];
  for (const part of CONTENT_PARTS) {
    if (await isKind(join(dir, part), 'file')) files.push({ path: part, file: join(dir, part) });
    else if (await isKind(join(dir, part), 'dir')) files.push(...(await taskTree(dir, part)).files);
  }
  return digest(files);
}

async function digest(files: TaskTree['files']): Promise<string> {
  const hash = createHash('sha256');
  for (const { path, file } of [...files].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const { size } = await stat(file);
    // Lengths make the stream unambiguous: no two folders can give the same bytes.
    hash.update(`${Buffer.byteLength(path)} ${path} ${size}\n`);
    for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer);
  }
  return `sha256:${hash.digest('hex')}`;
}

async function isKind(path: string, kind: 'file' | 'dir'): Promise<boolean> {
  try {
    const found = await stat(path);
    return kind === 'file' ? found.isFile() : found.isDirectory();
  } catch {
    return false;
  }
}
