/** What is wrong with a name, a reference or an alias of a version store. */
export type StoreProblem =
  | 'invalid_name'
  | 'invalid_alias'
  | 'no_such_name'
  | 'no_such_version'
  | 'no_such_version_or_alias'
  | 'dangling_alias';

/** A version that cannot be had; the message says what there is. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly kind: StoreProblem;

  constructor(kind: StoreProblem, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** What a store holds under one name. */
export type StoredVersions = { readonly versions: readonly number[]; readonly aliases: ReadonlyMap<string, number> };

/** The alias that a reference without a version means, when it is set. */
export const CHAMPION = 'champion';

/** Names are folder names: ASCII letters, digits, dots, dashes and underscores, a letter or digit first. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,254}$/;
const VERSION = /^v?([0-9]+)$/;

export function isStoreName(name: string): boolean {
  return NAME.test(name);
}

/** @throws StoreError `invalid_name`; `what` is the store's word for what it keeps, e.g. `adapter`. */
export function checkStoreName(name: string, what: string): void {
  if (!isStoreName(name))
    throw new StoreError(
      'invalid_name',
      `${what} name ${JSON.stringify(name)}: use ASCII letters, digits, dots, dashes and underscores, a letter or digit first`,
    );
}

/** The number that `vN` or `N` means; null for what does not read like a version. */
export function versionNumber(ref: string): number | null {
  const digits = VERSION.exec(ref)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** An alias that reads like a version could never be reached. @throws StoreError `invalid_alias` */
export function checkAlias(alias: string): void {
  if (!isStoreName(alias) || VERSION.test(alias))
    throw new StoreError('invalid_alias', `alias ${JSON.stringify(alias)}: use a name that does not read like a version (v3, 3)`);
}

/**
 * The version of `name` (as messages call it, e.g. `agent mine`) that `ref` means: `vN` or `N`, an alias, or (null) the champion and without one the newest. An alias to a version that is
 * gone is an error: what was promoted must not turn into something else by itself.
 * @throws StoreError
 */
export function resolveVersion(name: string, ref: string | null, { versions, aliases }: StoredVersions): number {
  if (versions.length === 0) throw new StoreError('no_such_name', `there is no ${name}`);
  if (ref === null) return aliases.has(CHAMPION) ? target(name, CHAMPION, { versions, aliases }) : Math.max(...versions);
  const version = versionNumber(ref);
  if (version === null) return target(name, ref, { versions, aliases });
  if (!versions.includes(version)) throw new StoreError('no_such_version', `${name} has no version ${version}; it has ${told(versions)}`);
  return version;
}

function target(name: string, alias: string, { versions, aliases }: StoredVersions): number {
  const version = aliases.get(alias);
  if (version === undefined) {
    const known = [...aliases.keys()].join(', ') || 'none';
    const problem = `${name} has no version or alias ${JSON.stringify(alias)}; versions ${told(versions)}, aliases: ${known}`;
    throw new StoreError('no_such_version_or_alias', problem);
  }
  if (!versions.includes(version))
    throw new StoreError(
      'dangling_alias',
      `${name}: alias ${alias} points at v${version}, which is gone; set it to one of ${told(versions)}`,
    );
  return version;
}

const told = (versions: readonly number[]) =>
  [...versions]
    .sort((a, b) => a - b)
    .map((version) => `v${version}`)
    .join(', ');
