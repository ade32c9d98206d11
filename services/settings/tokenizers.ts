import { existsSync } from 'node:fs';
import path from 'node:path';

/** Where a model's tokenizer files come from: a folder of this machine, or a repository of the model hub. */
export type TokenizerSource = { readonly folder: string } | { readonly repo: string };

const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9][A-Za-z0-9._-]*)?$/;

/** A folder begins with a dot or a slash, so that `models/qwen` is never taken for both. */
const isFolder = (text: string) => text.startsWith('.') || path.isAbsolute(text);

export const isTokenizerSource = (text: string): boolean => isFolder(text) || REPOSITORY.test(text);

/** Why this cannot be read as one thing; null when it can. */
export function ambiguousSource(root: string, text: string): string | null {
  if (isFolder(text) || !existsSync(path.resolve(root, text))) return null;
  return `"${text}" would be a repository of the model hub, and there is a folder of that name: write "./${text}" for the folder`;
}

/** Folders are named relative to the project root. */
export function tokenizerSources(root: string, written: Readonly<Record<string, string>>): Readonly<Record<string, TokenizerSource>> {
  return Object.fromEntries(
    Object.entries(written).map(([model, text]) => [model, isFolder(text) ? { folder: path.resolve(root, text) } : { repo: text }]),
  );
}
