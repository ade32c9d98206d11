import { statSync } from 'node:fs';
import { adapters } from './adapters/index.ts';
import { adapterOf, judge, type Verdict } from './judge.ts';
import { readVectorDir, type VectorFamily } from './vector-file.ts';

const USAGE = `usage: npm run vectors -- DIR
Runs every vector file (*.json, *.jsonl) of DIR against this code, family by family: passed/all, then what failed, differs or does not apply.
Exit code 0: nothing failed. 1: a case failed. 2: DIR cannot be used.`;

type Judged = { readonly id: string; readonly verdict: Verdict };
type Outcome = Verdict['outcome'];

/** Runs every vector family of a directory against this code. Exit 0 all agree, 1 a case fails, 2 the directory cannot be used. */
async function main(args: readonly string[]): Promise<number> {
  const [dir, ...rest] = args;
  if (args.some((arg) => arg === '--help' || arg === '-h')) {
    console.log(USAGE);
    return 0;
  }
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
  console.log(`${family.family} ${score(having('passed').length + refused.length, judged.length, having('not_applicable').length)}`);
  for (const one of having('failed')) console.log(`  FAILED ${one.id}: ${detail(one)}`);
  for (const one of having('differs')) console.log(`  differs (${detail(one)}): ${one.id}`);
  for (const [why, cases] of Map.groupBy(having('not_applicable'), detail)) console.log(`  not applicable: ${listed(cases)}: ${why}`);
  if (refused.length > 0)
    console.log(`  refused where the recorder converts (counted as passed): ${refused.map((one) => one.id).join(', ')}`);
  const unknown = Map.groupBy(having('unknown_kind'), detail);
  for (const [kind, cases] of unknown) console.log(`  kind ${kind || '(none)'} not known yet: ${cases.length} cases not run`);
}

/** `17/43 (26 not applicable)`: of all cases, those that passed; what is neither is named below. */
function score(passed: number, all: number, notApplicable: number): string {
  if (notApplicable === 0) return `${passed}/${all}`;
  return notApplicable === all ? `0 of ${all} apply` : `${passed}/${all} (${notApplicable} not applicable)`;
}

const MOST_LISTED = 4;

function listed(cases: readonly Judged[]): string {
  const named = cases.slice(0, MOST_LISTED).map(({ id }) => id);
  return cases.length > MOST_LISTED ? `${named.join(', ')} and ${cases.length - MOST_LISTED} more` : named.join(', ');
}

function usage(problem: string): number {
  console.error(`vectors: ${problem}\n${USAGE}`);
  return 2;
}

process.exitCode = await main(process.argv.slice(2));
