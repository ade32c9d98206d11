import { constants } from 'node:fs';
import { copyFile, lstat, mkdir, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { BadHarborInput } from '../errors.ts';

/** Never part of a task: what tools leave behind, and a repository's own records. */
const IGNORED_NAMES = new Set(['.DS_Store', '.git', '__pycache__']);

/** What a folder of a task holds, links within it followed: paths have forward slashes, `file` is where the bytes really are. */
export type TaskTree = { readonly dirs: readonly string[]; readonly files: readonly { readonly path: string; readonly file: string }[] };

/**
 * Everything below `top` (or `top/under`). A link counts as what it leads to, as for harbor. Throws `BadHarborInput` for one that leads out
 * of the task, leads nowhere, or is absolute, and for what is neither file nor folder.
 */
export async function taskTree(top: string, under = ''): Promise<TaskTree> {
  const root = await realpath(top);
  const [dirs, files]: [string[], { path: string; file: string }[]] = [[], []];
  const walk = async (here: string, prefix: string, above: readonly string[]): Promise<void> => {
    for (const { name } of await readdir(here, { withFileTypes: true })) {
      if (IGNORED_NAMES.has(name)) continue;
      const path = prefix === '' ? name : `${prefix}/${name}`;
      const file = await landing(root, join(here, name), path);
      const found = await stat(file);
      if (found.isFile()) files.push({ path, file });
      else if (!found.isDirectory()) throw new BadHarborInput(`${path} of task ${top} is neither a file nor a folder: remove it`);
      else if (above.includes(file)) throw new BadHarborInput(`${path} of task ${top} is a link to a folder that it is in: remove it`);
      else {
        dirs.push(path);
        await walk(file, path, [...above, file]);
      }
    }
  };
  await walk(join(root, under), under, [root, join(root, under)]);
  return { dirs, files };
}

/** Where an entry really is. */
async function landing(root: string, entry: string, path: string): Promise<string> {
  if (!(await lstat(entry)).isSymbolicLink()) return entry;
  const told = `${path} of task ${root} is a link`;
  if (isAbsolute(await readlink(entry)))
    throw new BadHarborInput(`${told} by an absolute path: links of a task must be relative and stay in it`);
  const target = await realpath(entry).catch(() => {
    throw new BadHarborInput(`${told} that leads nowhere: remove it`);
  });
  if (!isWithin(root, target)) throw new BadHarborInput(`${told} that leads out of the task: put a copy in its place`);
  return target;
}

function isWithin(root: string, path: string): boolean {
  const inside = relative(root, path);
  return inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

/** Copies a task to a folder that is not there yet, with copies in the place of links. Modes stay: they are part of what a trial sees. */
export async function copyTask(from: string, to: string): Promise<void> {
  const { dirs, files } = await taskTree(from);
  await mkdir(to, { recursive: true });
  for (const path of dirs) await mkdir(join(to, path));
  for (const { path, file } of files) await copyFile(file, join(to, path), constants.COPYFILE_FICLONE | constants.COPYFILE_EXCL);
}

/** Changes when anything in a folder is written, added, removed or replaced; cheap, as it reads no file. */
export async function treeSignature(top: string): Promise<string> {
  const lines: string[] = [];
  const walk = async (here: string): Promise<void> => {
    for (const { name } of await readdir(here, { withFileTypes: true })) {
      const path = join(here, name);
      const found = await lstat(path, { bigint: true });
      lines.push(`${path} ${found.ino} ${found.mode} ${found.size} ${found.mtimeNs} ${found.ctimeNs}`);
      if (found.isDirectory()) await walk(path);
    }
  };
  await walk(top);
  return lines.sort().join('\n');
}
