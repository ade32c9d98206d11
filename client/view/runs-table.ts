import type { Colors } from '../console.ts';
import type { ListedRun } from '../run-list.ts';
import { DASH, percent, usd } from './format.ts';
import { table } from './table.ts';

/** Runs, one a line; solve rate and step are those of the last finished step. */
export function runsTable(runs: readonly ListedRun[], colors: Colors): string {
  const rows = runs.map((run) => [
    run.runId,
    run.state === 'failed' ? colors.red(run.state) : run.state,
    run.phase ?? DASH,
    run.waitingFor ? colors.yellow(run.waitingFor) : DASH,
    run.step === null ? DASH : `${run.step}`,
    percent(run.solveRate),
    run.spentUsd === null ? DASH : usd(run.spentUsd),
    run.startedAt.slice(0, 16).replace('T', ' '),
  ]);
  return table(colors, ['run', 'state', 'phase', 'waits for', 'step', 'solve rate', 'spent', 'started (UTC)'], rows, 4);
}
