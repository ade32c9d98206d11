import { statSync } from 'node:fs';
import { adapters } from './adapters/index.ts';
import { adapterOf, judge, type Verdict } from './judge.ts';
import { readVectorDir, type VectorFamily } from './vector-file.ts';

type Judged = { readonly id: string; readonly verdict: Verdict };
type Outcome = Verdict['outcome'];

/** Runs every vector family of a directory against this code. Exit 0 all agree, 1 a case fails, 2 the directory cannot be used. */
async function main(args: readonly string[]): Promise<number> {
  const [dir, ...rest] = args;
  if (dir === undefined || rest.length > 0) return usage('name one directory of vector files');
  if (!statSync(dir, { throwIfNoEntry: false })?.isDirectory()) return usage(`${dir} is not a directory`);
  let families: VectorFamily[];
  try {
    families = readVectorDir(dir);
  } catch (error) {
    return usage((error as Error).message);
  }
  let failed = false;
  for (const family of families) {
    const adapter = adapterOf(adapters, family.family);
    if (!adapter) {
      console.log(`${family.family}: not known yet (${family.file}, ${family.cases.length} cases not run)`);
      continue;
    }
    const judged: Judged[] = [];
    for (const vector of family.cases) judged.push({ id: vector.id, verdict: await judge(adapter, family, vector) });
    report(family, judged);
    failed ||= judged.some(({ verdict }) => verdict.outcome === 'failed');
  }
  return failed ? 1 : 0;
}

function report(family: VectorFamily, judged: readonly Judged[]): void {
  const having = (outcome: Outcome) => judged.filter(({ verdict }) => verdict.outcome === outcome);
  const detail = ({ verdict }: Judged) => (verdict.outcome === 'passed' ? '' : verdict.detail);
  const refused = having('refused');
  console.log(`${family.family} ${having('passed').length + refused.length}/${judged.length}`);
  for (const one of having('failed')) console.log(`  FAILED ${one.id}: ${detail(one)}`);
  for (const one of having('differs')) console.log(`  differs (${detail(one)}): ${one.id}`);
  for (const [why, cases] of Map.groupBy(having('not_applicable'), detail)) console.log(`  not applicable: ${listed(cases)}: ${why}`);
  if (refused.length > 0)
    console.log(`  refused where the recorder converts (counted as passed): ${refused.map((one) => one.id).join(', ')}`);
  const unknown = Map.groupBy(having('unknown_kind'), detail);
  for (const [kind, cases] of unknown) console.log(`  kind ${kind || '(none)'} not known yet: ${cases.length} cases not run`);
}

const MOST_LISTED = 4;

function listed(cases: readonly Judged[]): string {
  const named = cases.slice(0, MOST_LISTED).map(({ id }) => id);
  return cases.length > MOST_LISTED ? `${named.join(', ')} and ${cases.length - MOST_LISTED} more` : named.join(', ');
}

function usage(problem: string): number {
  console.error(`vectors: ${problem}\nusage: npm run vectors -- DIR`);
  return 2;
}

process.exitCode = await main(process.argv.slice(2));
