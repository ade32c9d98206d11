import { tableOf } from '../../bench/support/table.ts';
import type { ChaosRun } from './chaos-run.ts';
import type { Check } from './checks.ts';
import type { KillRecord } from './kills.ts';
import { savedTokens } from './rows.ts';

/** The report of a chaos run for a person: what was killed, and what came of each promise. */
export function report(run: ChaosRun, checks: readonly Check[]): string {
  const failed = checks.filter(({ ok }) => !ok).length;
  const saved = Object.entries(savedTokens(run.rows)).map(([name, tokens]) => `${name} ${tokens}`);
  return [
    killTable(run.kills),
    checkTable(checks),
    ...(saved.length > 0 ? [`over all steps: ${saved.join(', ')}`] : []),
    `${run.runId}: ${run.steps} steps, ${run.kills.length} kills in ${(run.wallMs / 60_000).toFixed(1)} min; ${failed === 0 ? 'every promise was kept' : `${failed} of ${checks.length} checks failed`}`,
  ].join('\n');
}

function killTable(kills: readonly KillRecord[]): string {
  const table = tableOf(['kill', 'signal', 'to', 'while', 'the run got on after'], ['right', 'left', 'left', 'left', 'right']);
  for (const { number, signal, target, moment, place, recoveredMs } of kills)
    table.push([
      `${number}`,
      signal,
      target,
      `${moment === 'trials' ? 'trials in flight' : 'optim_step pending'}: ${place}`,
      recoveredMs === null ? 'not' : `${(recoveredMs / 1000).toFixed(1)} s`,
    ]);
  return table.toString();
}

function checkTable(checks: readonly Check[]): string {
  const table = tableOf(['check', 'expected', 'found', '']);
  for (const { check, expected, found, ok } of checks) table.push([check, expected, found, ok ? 'ok' : 'FAILED']);
  return table.toString();
}
