import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { PROJECT_ROOT } from '../../services/settings/index.ts';

/** One recorded execution. `history` is Temporal's JSON; the workflow id matters, because code derives the ids of children from it. */
export type Recorded = Fixture & { readonly history: unknown };

/** What the index says of a fixture; its history is in `<name>.json.gz`. */
export type Fixture = {
  readonly name: string;
  readonly workflowId: string;
  readonly type: string;
  /** What of a run this history has in it, for a person. */
  readonly shows: string;
};

export const FOLDER = join(PROJECT_ROOT, 'test/fixtures/histories');
const INDEX = join(FOLDER, 'index.json');

/** Names of histories that were kept when workflow code was patched: `<name>@<patch id>`. */
export const keptFor = (name: string): string | null => name.split('@')[1] ?? null;

export const fileOf = (name: string): string => join(FOLDER, `${name}.json.gz`);

export function readIndex(): Fixture[] {
  return existsSync(INDEX) ? (JSON.parse(readFileSync(INDEX, 'utf8')) as Fixture[]) : [];
}

export function readHistory(name: string): unknown {
  return JSON.parse(gunzipSync(readFileSync(fileOf(name))).toString());
}

/** Makes these the fixtures: writes what is new, removes what is not among them. Returns their size in bytes. */
export function writeFixtures(recorded: readonly Recorded[], kept: readonly Fixture[]): number {
  mkdirSync(FOLDER, { recursive: true });
  const fixtures = [...kept, ...recorded.map(({ history: _, ...fixture }) => fixture)];
  const wanted = new Set(fixtures.map(({ name }) => fileOf(name)));
  for (const file of readdirSync(FOLDER)) if (file.endsWith('.gz') && !wanted.has(join(FOLDER, file))) rmSync(join(FOLDER, file));
  for (const { name, history } of recorded) writeFileSync(fileOf(name), gzipSync(JSON.stringify(history), { level: 9 }));
  const sorted = fixtures.sort((a, b) => (a.name < b.name ? -1 : 1));
  writeFileSync(INDEX, `${JSON.stringify(sorted, null, 2)}\n`);
  return sorted.reduce((sum, { name }) => sum + readFileSync(fileOf(name)).length, 0);
}
