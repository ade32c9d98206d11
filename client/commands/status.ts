import type { Command } from 'commander';
import type { Console } from '../console.ts';
import { EXIT } from '../exit-codes.ts';
import { childHeldUp, childProgress } from '../follow.ts';
import { withRun } from '../session.ts';
import { statusText } from '../view/status-text.ts';
import { addCommand, run } from './command.ts';

type Options = { readonly json?: boolean };

export function addStatus(program: Command): void {
  addCommand(program, 'status <run>', 'what a run is doing: its last steps, checks, evaluations, spend by meter and decisions').action(
    run(showStatus),
  );
}

async function showStatus(console: Console, _: Options, runId: string): Promise<number> {
  return withRun(runId, async (found) => {
    const state = await found.state();
    const end = state.open ? null : await found.end();
    const [status, metrics] = await Promise.all([found.status(), found.metrics()]);
    const heldUp = state.open ? [...state.heldUp, ...(await childHeldUp(found, status))] : [];
    const progress = state.open ? await childProgress(found, status) : null;
    const failure = end?.kind === 'failed' ? end.failure : null;
    console.result({ ...status, metrics, progress, heldUp, failure });
    console.print(statusText({ status, rows: metrics.rows, progress, heldUp, failure }, console.colors));
    return EXIT.ok;
  });
}
