import { createHash } from 'node:crypto';
import { parse as parseToml } from 'smol-toml';
import { type FoundAgent, programText } from '../core/run/agent-program.ts';
import { isBuiltin } from '../core/run/agents.ts';
import type { HarnessDocument, StoredHarness } from '../core/run/harness-document.ts';
import { readHarness } from '../core/run/harness-file.ts';
import type { HarnessStore } from '../services/stores/harness-store.ts';
import { CHAMPION, StoreError, versionNumber } from '../services/stores/version-refs.ts';
import { CliError } from './errors.ts';
import { readInputFile } from './input/files.ts';

/** What the store has under one name. `meant` is what the name alone means. */
export type StoredName = {
  readonly name: string;
  readonly versions: readonly number[];
  readonly aliases: Readonly<Record<string, number>>;
  readonly meant: number;
  /** Of that version. */
  readonly runtime: string;
};

export type Added = {
  readonly name: string;
  readonly version: number;
  readonly isNew: boolean;
  readonly meant: number;
  readonly path: string;
};

/** Reads a document's file, JSON or (by its name) TOML. @throws CliError with all that is wrong, each with file and field */
export async function readHarnessFile(file: string): Promise<HarnessDocument> {
  const read = await readInputFile(file, 'the file');
  if ('problem' in read) throw new CliError(read.problem);
  const found = readHarness(parsed(file, read.text));
  if ('problems' in found) throw new CliError(found.problems.map((problem) => `${file}: ${problem}`).join('\n'));
  return found.document;
}

function parsed(file: string, text: string): unknown {
  const isToml = file.endsWith('.toml');
  try {
    return isToml ? parseToml(text) : JSON.parse(text);
  } catch (error) {
    const [problem] = (error as Error).message.split('\n');
    throw new CliError(`${file}: not ${isToml ? 'TOML' : 'JSON (write TOML into a file that ends in .toml)'}: ${problem}`);
  }
}

/** Keeps a document as the next version of its name. One that a version already holds makes no other. @throws CliError, StoreError */
export async function addHarness(
  harnesses: HarnessStore<StoredHarness>,
  name: string,
  document: HarnessDocument,
  alias: string | null,
): Promise<Added> {
  if (isBuiltin(name)) throw new CliError(`${name} is always the built-in agent: store yours under another name`);
  const key = createHash('sha256').update(JSON.stringify(document)).digest('hex');
  const before = await harnesses.versions.numbers(name);
  const { version, path } = await harnesses.save(document, { name, key, alias });
  const meant = await harnesses.versions.resolve(name, null);
  return { name, version, path, isNew: !before.includes(version), meant: meant.version };
}

export async function storedNames(harnesses: HarnessStore<StoredHarness>): Promise<StoredName[]> {
  const { versions: store } = harnesses;
  return Promise.all(
    (await store.names()).map(async (name) => {
      const [versions, aliases] = [await store.numbers(name), await store.aliases(name)];
      const meant = aliases.get(CHAMPION) ?? Math.max(...versions);
      const runtime = await harnesses.load(name, `${meant}`).then(
        ({ document }) => document.runtime,
        () => 'unreadable',
      );
      return { name, versions, aliases: Object.fromEntries(aliases), meant, runtime };
    }),
  );
}

/** `v3` or `3` as a number. @throws StoreError */
export function neededVersion(given: string): number {
  const version = versionNumber(given);
  if (version === null) throw new StoreError('no_such_version', `${JSON.stringify(given)} is not a version: write v3 or 3`);
  return version;
}

/** The hash that a run pins an agent by. */
export const hashOf = (agent: FoundAgent) => createHash('sha256').update(programText(agent)).digest('hex');
