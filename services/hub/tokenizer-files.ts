import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** What is taken of a model; its weights are the training service's business. */
export const TOKENIZER_FILES = [
  'tokenizer.json',
  'tokenizer_config.json',
  'chat_template.jinja',
  'additional_chat_templates/tool_use.jinja',
  'generation_config.json',
] as const;
export type TokenizerFile = (typeof TOKENIZER_FILES)[number];

/** sha256 by file name, of those that are there: two workers with the same ones render alike. */
export type FileDigests = Readonly<Partial<Record<TokenizerFile, string>>>;

export async function fileDigests(folder: string): Promise<FileDigests> {
  const digests: Partial<Record<TokenizerFile, string>> = {};
  for (const name of TOKENIZER_FILES) {
    const bytes = await bytesOf(folder, name);
    if (bytes !== null) digests[name] = createHash('sha256').update(bytes).digest('hex');
  }
  return digests;
}

/** What a folder lacks of what a conversation needs; empty when it has all. */
export async function lacking(folder: string): Promise<string[]> {
  const missing: string[] = [];
  if (!(await isThere(folder, 'tokenizer.json'))) missing.push('tokenizer.json');
  const config = await bytesOf(folder, 'tokenizer_config.json');
  if (config === null) missing.push('tokenizer_config.json');
  const hasTemplate = (await isThere(folder, 'chat_template.jinja')) || (config !== null && namesTemplate(config));
  if (!hasTemplate) missing.push('a chat template (chat_template.jinja, or chat_template in tokenizer_config.json)');
  return missing;
}

/** A config that is no JSON names none: whoever loads it says so. */
function namesTemplate(config: Buffer): boolean {
  try {
    const parsed: unknown = JSON.parse(config.toString());
    return typeof parsed === 'object' && parsed !== null && 'chat_template' in parsed && parsed.chat_template !== null;
  } catch {
    return false;
  }
}

function isThere(folder: string, name: TokenizerFile): Promise<boolean> {
  return stat(join(folder, name)).then(
    (found) => found.isFile(),
    () => false,
  );
}

function bytesOf(folder: string, name: TokenizerFile): Promise<Buffer | null> {
  return readFile(join(folder, name)).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
}
