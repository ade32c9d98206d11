import { randomUUID } from 'node:crypto';
import { appendFile, mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { isAbsolute, join, relative, resolve } from 'node:path';

/** The folder of one run: a readable mirror of what history knows, never the truth. */
export class RunFolder {
  readonly path: string;

  constructor(projectRoot: string, runDir: string) {
    this.path = below(projectRoot, runDir, 'runDir');
  }

  /** Writes a file whole or not at all. */
  async write(name: string, text: string): Promise<void> {
    await mkdir(this.path, { recursive: true });
    const partial = join(this.path, `${name}.${randomUUID()}.partial`);
    try {
      await writeFile(partial, text);
      await rename(partial, join(this.path, name));
    } catch (error) {
      await rm(partial, { force: true });
      throw error;
    }
  }

  /** Makes a file that must not be there yet. Returns what it holds: `text`, or what was there before. */
  async claim(name: string, text: string): Promise<string> {
    await mkdir(this.path, { recursive: true });
    const path = join(this.path, name);
    try {
      const file = await open(path, 'wx');
      await file.writeFile(text);
      await file.close();
      return text;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      return readFile(path, 'utf8');
    }
  }

  async append(name: string, line: string): Promise<void> {
    await mkdir(this.path, { recursive: true });
    await appendFile(join(this.path, name), `${line}\n`);
  }
}

/** `path` below `root`; a path that leads out is refused by the name of its field. */
export function below(root: string, path: string, field: string): string {
  const whole = resolve(root, path);
  const inside = relative(resolve(root), whole);
  if (inside === '' || inside.startsWith('..') || isAbsolute(inside))
    throw new Error(`${field}: ${path} is not below the project root; a run reads and writes only there`);
  return whole;
}
