import type { Command } from 'commander';
import { COMMAND } from '../command-name.ts';
import type { Console } from '../console.ts';
import { EXIT } from '../exit-codes.ts';
import { isAbort, onInterrupt } from '../interrupt.ts';
import type { RunClient } from '../run-client.ts';
import { withRun } from '../session.ts';
import { reportOf } from '../view/report.ts';
import { addCommand, run } from './command.ts';
import { addDeciding, type Deciding, decisionOf } from './deciding.ts';

export type WatchOptions = Deciding & { readonly json?: boolean; readonly failOnReject?: boolean };

export function addWatch(program: Command): void {
  addDeciding(addCommand(program, 'watch <run>', 'show a run until it ends, then its final table'))
    .option('--fail-on-reject', 'exit code 3 when the gate does not accept')
    .action(run<WatchOptions, [string]>((console, options, runId) => withRun(runId, (found) => watchRun(console, found, options))));
}

/** Follows a run in the foreground. Ctrl-C leaves the run running and says how to return. */
export async function watchRun(console: Console, found: RunClient, options: WatchOptions): Promise<number> {
  const { followInForeground, reportEnd } = await import('../foreground.ts');
  const interrupt = onInterrupt();
  try {
    const decision = (waitId: string) => decisionOf(options, waitId);
    const followed = await followInForeground(found, console, { signal: interrupt.signal, decision });
    return reportEnd(reportOf(found.runId, followed), console, options.failOnReject === true);
  } catch (error) {
    if (!isAbort(error)) throw error;
    console.remark(
      `\n${found.runId} goes on without you. Come back with: ${COMMAND} watch ${found.runId}   end it with: ${COMMAND} stop ${found.runId}`,
    );
    return EXIT.interrupted;
  } finally {
    interrupt.release();
  }
}
