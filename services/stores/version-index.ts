import { parse, stringify } from 'smol-toml';

/** A store folder that does not read as one; names the file. */
export class StoreDamaged extends Error {
  override readonly name = 'StoreDamaged';
}

/** What a store remembers of a name beside its version folders. */
export type VersionIndex = {
  /** The highest number ever given out: a version that was deleted leaves its number unused. */
  readonly lastVersion: number;
  readonly aliases: ReadonlyMap<string, number>;
};

/**
 * Reads the text of an `aliases.toml`: `last_version` and the table `[aliases]`. Aliases whose value is not a whole number name no
 * version and are left out. @throws StoreDamaged, naming `path`, when the text is not TOML of this form.
 */
export function readIndexText(path: string, text: string): VersionIndex {
  const { last_version: last = 0n, aliases = {} } = parsed(path, text);
  if (typeof last !== 'bigint' || last < 0n) throw damaged(path, 'last_version must be a whole number');
  if (typeof aliases !== 'object' || Array.isArray(aliases)) throw damaged(path, '[aliases] must be a table');
  const whole = Object.entries(aliases).filter((entry): entry is [string, bigint] => typeof entry[1] === 'bigint');
  return { lastVersion: Number(last), aliases: new Map(whole.map(([alias, version]) => [alias, Number(version)])) };
}

export function indexText({ lastVersion, aliases }: VersionIndex): string {
  return stringify({ last_version: lastVersion, aliases: Object.fromEntries(aliases) });
}

/** Whole numbers as bigint: TOML tells them apart from `1.0`. */
function parsed(path: string, text: string) {
  try {
    return parse(text, { integersAsBigInt: true });
  } catch (error) {
    throw damaged(path, (error as Error).message.trim());
  }
}

function damaged(path: string, problem: string): StoreDamaged {
  return new StoreDamaged(`${path} is not a store index (${problem}); mend it, or restore it from a copy`);
}
