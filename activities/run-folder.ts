import { randomUUID } from 'node:crypto';
import { appendFile, link, mkdir, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';
import { InputProblem } from './input-problem.ts';

/** The folder of one run: a readable mirror of what history knows, never the truth. */
export class RunFolder {
  readonly path: string;

  constructor(projectRoot: string, runDir: string) {
    this.path = below(projectRoot, runDir, 'runDir');
  }

  /** Writes a file whole or not at all. */
  async write(name: string, text: string): Promise<void> {
    await this.beside(name, text, (partial, path) => rename(partial, path));
  }

  /** Makes a file, whole, that must not be there yet. Returns what it holds: `text`, or what was there before. */
  async claim(name: string, text: string): Promise<string> {
    try {
      await this.beside(name, text, (partial, path) => link(partial, path));
      return text;
    } catch (error) {
      const held = (error as NodeJS.ErrnoException).code === 'EEXIST' ? await this.read(name) : null;
      if (held === null) throw error;
      return held;
    }
  }

  /** What a file holds; null where there is none. */
  async read(name: string): Promise<string | null> {
    return readFile(join(this.path, name), 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return null;
      throw error;
    });
  }

  /** Names of the files that are there, without those that a write left half. */
  async names(): Promise<string[]> {
    const names = await readdir(this.path).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return [];
      throw error;
    });
    return names.filter((name) => !name.endsWith(PARTIAL));
  }

  async append(name: string, text: string): Promise<void> {
    await mkdir(this.path, { recursive: true });
    await appendFile(join(this.path, name), text);
  }

  /** Puts a finished file in its place: whoever reads there, or dies here, never meets half of one. */
  private async beside(name: string, text: string, place: (partial: string, path: string) => Promise<void>): Promise<void> {
    await mkdir(this.path, { recursive: true });
    const partial = join(this.path, `${name}.${randomUUID()}${PARTIAL}`);
    try {
      await writeFile(partial, text);
      await place(partial, join(this.path, name));
    } finally {
      await rm(partial, { force: true });
    }
  }
}

const PARTIAL = '.partial';

/** A value as JSON that people read too. */
export const jsonText = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

/** `path` below `root`. @throws InputProblem by the name of its field for a path that leads out. */
export function below(root: string, path: string, field: string): string {
  const whole = resolve(root, path);
  const inside = relative(resolve(root), whole);
  if (inside === '' || inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw leadsOut(field, path);
  return whole;
}

/** As `below`, with links followed: one that leads out of the root is refused too. */
export async function reallyBelow(root: string, path: string, field: string): Promise<string> {
  const whole = below(root, path, field);
  const inside = relative(await realpath(root), await realpathSoFar(whole));
  if (inside === '..' || inside.startsWith(`..${sep}`) || isAbsolute(inside)) throw leadsOut(field, path);
  return whole;
}

/** Where the part of a path that exists really is. */
async function realpathSoFar(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(path) === path) throw error;
    return realpathSoFar(dirname(path));
  }
}

function leadsOut(field: string, path: string): InputProblem {
  return new InputProblem(field, `${path} is not below the project root; a run reads and writes only there`);
}
