import { randomUUID } from 'node:crypto';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';

const Index = z.strictObject({ lastVersion: z.int().nonnegative(), aliases: z.record(z.string(), z.int().positive()) });
type Index = z.infer<typeof Index>;

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A store folder that does not read as one; names the file. */
export class StoreDamaged extends Error {
  override readonly name = 'StoreDamaged';
}

/**
 * Adapter versions below `root`: `<name>/vN/` never changes once it is there, a number is never used twice, and the alias
 * `champion` names the newest accepted one. A version is filled beside its place and renamed.
 */
export class AdapterStore {
  private readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  /**
   * Saves `files` (name → text) as the next version and moves `champion` to it. `key` says what the version was made from:
   * saving the same key again returns the version that is there, so that a repeated call does not make two.
   */
  async save(
    name: string,
    key: string,
    files: (version: number) => Readonly<Record<string, string>>,
  ): Promise<{ version: number; path: string }> {
    if (!NAME.test(name)) throw new Error(`adapter name ${JSON.stringify(name)}: use letters, digits, dots, dashes and underscores`);
    const folder = join(this.root, name);
    await mkdir(folder, { recursive: true });
    const known = await this.versionMadeFrom(folder, key);
    const version = known ?? (await this.nextVersion(folder));
    const path = join(folder, `v${version}`);
    if (known === null) await fill(path, { ...files(version), 'made-from.txt': `${key}\n` });
    const index = await readIndex(folder);
    await writeIndex(folder, { lastVersion: Math.max(index.lastVersion, version), aliases: { ...index.aliases, champion: version } });
    return { version, path };
  }

  async champion(name: string): Promise<number | null> {
    return (await readIndex(join(this.root, name))).aliases.champion ?? null;
  }

  private async nextVersion(folder: string): Promise<number> {
    const [index, versions] = [await readIndex(folder), await versionsIn(folder)];
    return Math.max(index.lastVersion, ...versions, 0) + 1;
  }

  private async versionMadeFrom(folder: string, key: string): Promise<number | null> {
    for (const version of await versionsIn(folder)) {
      const madeFrom = await readFile(join(folder, `v${version}`, 'made-from.txt'), 'utf8').catch(() => '');
      if (madeFrom.trim() === key) return version;
    }
    return null;
  }
}

async function versionsIn(folder: string): Promise<number[]> {
  const names = await readdir(folder).catch(() => []);
  return names.flatMap((name) => (/^v[1-9]\d*$/.test(name) ? [Number(name.slice(1))] : []));
}

async function fill(path: string, files: Readonly<Record<string, string>>): Promise<void> {
  const partial = `${path}.${randomUUID()}.partial`;
  await mkdir(partial);
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(join(partial, name), text);
    await rename(partial, path);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    throw error;
  }
}

async function readIndex(folder: string): Promise<Index> {
  const path = join(folder, 'index.json');
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
  if (text === null) return { lastVersion: 0, aliases: {} };
  try {
    return Index.parse(JSON.parse(text));
  } catch (error) {
    throw new StoreDamaged(
      `${path} is not a store index (${error instanceof z.ZodError ? z.prettifyError(error) : error}); restore it from a copy`,
    );
  }
}

async function writeIndex(folder: string, index: Index): Promise<void> {
  const partial = join(folder, `index.${randomUUID()}.partial`);
  await writeFile(partial, `${JSON.stringify(index, null, 2)}\n`);
  await rename(partial, join(folder, 'index.json'));
}
