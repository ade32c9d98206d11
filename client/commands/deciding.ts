import { userInfo } from 'node:os';
import type { Command } from 'commander';

/** Options of every command that tells a run something. */
export type Deciding = { readonly by: string; readonly reason?: string };

/** Adds who decides, and why; the run's history keeps both. */
export function addDeciding(command: Command): Command {
  return command
    .option('--by <name>', 'who decides; recorded in the run', userInfo().username)
    .option('--reason <text>', 'why; recorded in the run');
}

export function decisionOf({ by, reason }: Deciding, waitId?: string): Record<string, unknown> {
  return { by, via: 'cli', ...(reason === undefined ? {} : { reason }), ...(waitId === undefined ? {} : { waitId }) };
}
