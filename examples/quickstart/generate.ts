import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { SplitSizes } from './splits.ts';
import { DEFAULT_SIZES, QUICKSTART_SEED, quickstartSplits } from './splits.ts';
import { taskFolder } from './task-folder.ts';

export type QuickstartOptions = {
  /** Which tasks are drawn; default `QUICKSTART_SEED`. */
  readonly seed?: number;
  readonly sizes?: SplitSizes;
};

export type Quickstart = {
  readonly dir: string;
  /** Folder of the harbor task folders, one a task id. */
  readonly tasksDir: string;
  /** JSON arrays of task ids. */
  readonly trainPath: string;
  readonly holdoutPath: string;
  readonly trainIds: readonly string[];
  readonly holdoutIds: readonly string[];
  /** False if what was there already matched. */
  readonly written: boolean;
};

/** Where the run config and the job template look, relative to the project root. */
export const DEFAULT_DIR = join('.stillroom', 'quickstart');

const STAMP = 'stamp.json';

/**
 * Makes the quickstart's task folders and split files in `dir`, or leaves them if generator and options are unchanged.
 * A new set is written beside `dir` and renamed into place, so an interrupted call leaves the old set or none.
 * @throws Error if `dir` holds something this generator did not write.
 */
export function generateQuickstart(dir: string = DEFAULT_DIR, options: QuickstartOptions = {}): Quickstart {
  const target = resolve(dir);
  const settings = {
    seed: options.seed ?? QUICKSTART_SEED,
    sizes: options.sizes ?? DEFAULT_SIZES,
  };
  const stamp = stampOf(settings);
  const splits = quickstartSplits(settings.seed, settings.sizes);
  const ids = { trainIds: splits.train.map(({ id }) => id), holdoutIds: splits.holdout.map(({ id }) => id) };
  const written = readStamp(target) !== stamp;
  if (written) {
    refuseForeign(target);
    const staging = stagingDir(target);
    for (const task of [...splits.train, ...splits.holdout]) writeFolder(join(staging, 'tasks', task.id), taskFolder(task));
    writeFolder(staging, { 'train.json': idList(ids.trainIds), 'holdout.json': idList(ids.holdoutIds), [STAMP]: stamp });
    swapIn(staging, target);
  }
  const paths = { tasksDir: join(target, 'tasks'), trainPath: join(target, 'train.json'), holdoutPath: join(target, 'holdout.json') };
  return { dir: target, ...paths, ...ids, written };
}

const idList = (ids: readonly string[]): string => `${JSON.stringify(ids, null, 2)}\n`;

function writeFolder(dir: string, files: Readonly<Record<string, string>>): void {
  for (const folder of new Set(Object.keys(files).map((path) => dirname(path)))) mkdirSync(join(dir, folder), { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(join(dir, path), text, { mode: path.endsWith('.sh') ? 0o755 : 0o644 });
}

/** What decides the output: the sources of this folder and the options. */
function stampOf(settings: Required<QuickstartOptions>): string {
  const hash = createHash('sha256');
  const sources = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));
  for (const name of sources.sort()) hash.update(`${name}\0`).update(readFileSync(join(import.meta.dirname, name)));
  return `${JSON.stringify({ sources: hash.digest('hex'), ...settings })}\n`;
}

function readStamp(dir: string): string | null {
  const path = join(dir, STAMP);
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

function refuseForeign(dir: string): void {
  if (!existsSync(dir) || existsSync(join(dir, STAMP)) || readdirSync(dir).length === 0) return;
  throw new Error(`${dir} holds files that the quickstart generator did not write (no ${STAMP}); remove it, or name another directory`);
}

/** A fresh directory beside the target (same file system, so it can be renamed); what dead processes left is removed. */
function stagingDir(target: string): string {
  const parent = dirname(target);
  const prefix = `.${basename(target)}-staging-`;
  mkdirSync(parent, { recursive: true });
  for (const name of readdirSync(parent)) {
    if (name.startsWith(prefix) && !isAlive(Number.parseInt(name.slice(prefix.length), 10)))
      rmSync(join(parent, name), { recursive: true });
  }
  return mkdtempSync(join(parent, `${prefix}${process.pid}-`));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function swapIn(staging: string, target: string): void {
  const old = stagingDir(target);
  if (existsSync(target)) renameSync(target, join(old, 'replaced'));
  renameSync(staging, target);
  rmSync(old, { recursive: true });
}

if (import.meta.main) {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { seed: { type: 'string' } } });
  const seed = values.seed === undefined ? QUICKSTART_SEED : Number(values.seed);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed ${values.seed}: not a whole number`);
  const made = generateQuickstart(positionals[0] ?? DEFAULT_DIR, { seed });
  const what = `${made.trainIds.length} training and ${made.holdoutIds.length} held-out tasks in ${made.dir}`;
  process.stdout.write(made.written ? `wrote ${what}\n` : `${what}: up to date\n`);
}
