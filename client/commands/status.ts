import type { Command } from 'commander';
import type { Console } from '../console.ts';
import { EXIT } from '../exit-codes.ts';
import { withRun } from '../session.ts';
import { statusText } from '../view/status-text.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean };

export function addStatus(program: Command): void {
  addCommand(program, 'status <run>', 'what a run is doing, its checks, evaluations, spend and decisions').action(run(showStatus));
}

async function showStatus(console: Console, _: Options, runId: string): Promise<number> {
  return withRun(runId, async (found) => {
    const state = await found.state();
    const end = state.open ? null : await found.end();
    const status = await found.status();
    const failure = end?.kind === 'failed' ? end.failure : null;
    console.result({ ...status, failure });
    console.print(statusText(status, failure, console.colors));
    return EXIT.ok;
  });
}
