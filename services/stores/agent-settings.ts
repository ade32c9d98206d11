import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parse } from 'smol-toml';
import type { ObjectStore } from '../blobs/object-store.ts';

/** The settings file cannot take the table; it was left as it is. */
export class SettingsUnusable extends Error {
  override readonly name = 'SettingsUnusable';
}

/**
 * Puts `table` (TOML text that starts with `[models.agent]`) into the settings file at `path`, in place of the one that is there.
 * Everything else is kept as it is, comments included. Fails without writing when the file is not TOML, or defines the table in a
 * form that cannot be replaced safely (inline or dotted keys).
 */
export async function writeModelsAgent(path: string, table: string): Promise<void> {
  await write(path, withTable(path, await textOf(path), table));
}

/**
 * The same where several machines share the settings: they are a sequence of objects, `settings/<number>.toml`, of which the last one
 * holds, and each is made once, from the one before it. The first is made from the file at `path`, which then mirrors the last.
 */
export async function writeSharedModelsAgent(objects: ObjectStore, path: string, table: string): Promise<void> {
  for (;;) {
    let last: string | null = null;
    for await (const { key } of objects.list(SHARED)) last = key;
    const before = last === null ? await textOf(path) : new TextDecoder().decode((await objects.get(last)) ?? new Uint8Array());
    const after = withTable(last ?? path, before, table);
    const next = Number.parseInt(last?.slice(SHARED.length) ?? '0', 10) + 1;
    const key = `${SHARED}${String(next).padStart(6, '0')}.toml`;
    if (after === before || (await objects.create(key, new TextEncoder().encode(after)))) return write(path, after);
  }
}

const SHARED = 'settings/';

function textOf(path: string): Promise<string> {
  return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
}

/** `path` is for messages. @throws SettingsUnusable */
function withTable(path: string, before: string, table: string): string {
  const old = parsed(path, before);
  const after = replaceTable(before, table);
  const expected = { ...old, models: { ...asTable(old.models), agent: asTable(parse(table).models).agent } };
  if (!sameJson(parsed(path, after), expected))
    throw new SettingsUnusable(
      `${path}: [models.agent] is written in a form that cannot be replaced; make it a table of its own, headed [models.agent]`,
    );
  return after;
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const partial = `${path}.${randomUUID()}.partial`;
  await writeFile(partial, text);
  await rename(partial, path);
}

function replaceTable(text: string, table: string): string {
  const lines = text.split('\n');
  const start = lines.findIndex((line) => /^\s*\[\s*models\s*\.\s*agent\s*\]/.test(line));
  if (start < 0) return `${text.trimEnd()}${text.trim() ? '\n\n' : ''}${table}`;
  const next = lines.findIndex((line, at) => at > start && /^\s*\[/.test(line));
  const rest = next < 0 ? [] : lines.slice(next);
  return [...lines.slice(0, start), ...table.trimEnd().split('\n'), '', ...rest].join('\n');
}

function parsed(path: string, text: string): Record<string, unknown> {
  try {
    return parse(text) as Record<string, unknown>;
  } catch (error) {
    throw new SettingsUnusable(`${path} is not valid TOML, so it is left as it is: ${(error as Error).message}`);
  }
}

const asTable = (value: unknown) => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {});

/** Equal as JSON whatever the order of keys. */
function sameJson(left: unknown, right: unknown): boolean {
  const sorted = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.map(sorted)
      : typeof value === 'object' && value !== null && !(value instanceof Date)
        ? Object.fromEntries(
            Object.entries(value)
              .sort(([a], [b]) => (a < b ? -1 : 1))
              .map(([key, inner]) => [key, sorted(inner)]),
          )
        : value;
  return JSON.stringify(sorted(left)) === JSON.stringify(sorted(right));
}
