import type { Command } from 'commander';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { wholeNumber } from '../input/number.ts';
import { withLink } from '../session.ts';
import { runsTable } from '../view/runs-table.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean; readonly limit: number };

export function addRuns(program: Command): void {
  addCommand(program, 'runs', 'list runs, the newest first')
    .option('--limit <n>', 'how many', wholeNumber(1), 20)
    .action(run<Options, []>(listRuns));
}

async function listRuns(console: Console, { limit }: Options): Promise<number> {
  const { readRuns } = await import('../run-list.ts');
  const runs = await withLink((link) => readRuns(link, limit));
  console.result(runs);
  console.print(runs.length === 0 ? `no runs yet; \`${COMMAND} start --help\` says how to begin one` : runsTable(runs, console.colors));
  return 0;
}
