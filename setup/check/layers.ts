import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type Import, importsOf } from './imports.ts';

/**
 * The house's arrows (docs/architecture.md), as data: what a room's files may import besides their own room. `code` may be loaded;
 * `types` only named in `import type`. A pattern is a folder, or a file without its `.ts`; `services/*` stands for each service.
 * Rooms that are not listed (worker.ts, test, bench, examples, setup), and every `*.test.ts`, may import anything.
 */
export type Room = {
  readonly room: string;
  readonly code: readonly string[];
  readonly types: readonly string[];
  /** When set, the only packages that may be loaded; node's own modules count as packages. */
  readonly packages?: readonly string[];
};

export const HOUSE: readonly Room[] = [
  { room: 'core', code: [], types: [], packages: ['zod', 'smol-toml', 'pure-rand'] },
  {
    room: 'workflows',
    code: ['core'],
    types: ['activities'],
    packages: ['@temporalio/workflow', '@temporalio/common', 'zod'],
  },
  { room: 'activities', code: ['services', 'core'], types: [] },
  { room: 'services/*', code: [], types: ['core', 'services'] },
  { room: 'trainer', code: ['services/tinker/wire'], types: ['core'] },
  {
    room: 'client',
    code: ['services', 'core', 'workflows/messages', 'workflows/search-attributes', 'examples/quickstart/generate'],
    types: ['workflows'],
  },
];

export type Violation = { readonly file: string; readonly line: number; readonly specifier: string; readonly rule: string };

/** Checks every TypeScript file under `root`. The tree is walked, not Git's index: a file is checked before it is added. */
export function violationsUnder(root: string): Violation[] {
  const files = globSync('**/*.ts', { cwd: root, exclude: (name) => name === 'node_modules' || name === '.stillroom' });
  return files.sort().flatMap((file) => violationsIn(file.split(path.sep).join('/'), readFileSync(path.join(root, file), 'utf8')));
}

/** Checks one file, named relative to the project root with forward slashes. */
export function violationsIn(file: string, source: string, house: readonly Room[] = HOUSE): Violation[] {
  if (file.endsWith('.test.ts')) return [];
  const home = roomOf(file, house);
  if (home === null) return [];
  return importsOf(source).flatMap((entry) => {
    const rule = judge(file, home, entry);
    return rule === null ? [] : [{ file, line: entry.line, specifier: entry.specifier, rule }];
  });
}

/** Why an import is not allowed, or null when it is. */
function judge(file: string, home: { room: Room; folder: string }, { specifier, typeOnly }: Import): string | null {
  const { room, folder } = home;
  if (!specifier.startsWith('.')) {
    if (typeOnly || room.packages === undefined) return null;
    const wanted = room.packages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
    return wanted ? null : `${room.room} may only load the packages ${room.packages.join(', ')}`;
  }
  const target = path.posix.join(path.posix.dirname(file), specifier).replace(/\.ts$/, '');
  const within = (place: string) => target === place || target.startsWith(`${place}/`);
  if (within(folder) || room.code.some(within)) return null;
  if (room.types.some(within)) return typeOnly ? null : `${room.room} may import only types from ${target} (import type)`;
  return `${room.room} may not import ${target}`;
}

/** The room a file is in, and that room's own folder (for `services/*` the service's); null in a room without rules. */
function roomOf(file: string, house: readonly Room[]): { room: Room; folder: string } | null {
  const parts = file.split('/');
  for (const room of house) {
    const pattern = room.room.split('/');
    if (parts.length > pattern.length && pattern.every((name, i) => name === '*' || name === parts[i]))
      return { room, folder: parts.slice(0, pattern.length).join('/') };
  }
  return null;
}
