import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { CredentialRefused } from '../errors.ts';

const NAME = '~/.tinker/credentials.json';
/** Anyone but the owner. */
const OTHERS = 0o077;

const entrySchema = z.union([z.string(), z.looseObject({ api_key: z.string() }), z.looseObject({ key: z.string() })]);
const fileSchema = z.looseObject({ version: z.literal(1), default: z.string().nullish(), keys: z.record(z.string(), entrySchema) });

/**
 * The default key that the service's own command line has stored; null without such a file or default.
 * @throws CredentialRefused when others may read the file, or it is not of version 1
 */
export function defaultKeyOfFile(): { readonly file: string; readonly key: string } | null {
  const path = join(process.env.HOME || homedir(), '.tinker', 'credentials.json');
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return null;
  if (process.platform !== 'win32' && (stat.mode & OTHERS) !== 0) refuse('may be read by others: chmod 600 it');
  const parsed = fileSchema.safeParse(jsonOf(readFileSync(path, 'utf8')));
  if (!parsed.success) refuse('is not {"version": 1, "default": name, "keys": {name: key}}');
  const { default: name, keys } = parsed.data;
  if (!name) return null;
  const entry = keys[name];
  if (entry === undefined) refuse('names a default that is not among its keys');
  const key = typeof entry === 'string' ? entry : 'api_key' in entry ? entry.api_key : entry.key;
  return { file: NAME, key: String(key).trim() };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function refuse(what: string): never {
  throw new CredentialRefused(`${NAME} ${what}, or set TINKER_API_KEY`, { call: 'connect' });
}
