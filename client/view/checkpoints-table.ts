import type { CheckpointRow, CheckpointsView } from '../../core/training/checkpoint-view.ts';
import type { Colors } from '../console.ts';
import { table } from './table.ts';
import { wrapped } from './wrap.ts';

/** Whether a sweep was asked for, and done. */
export type Sweep = { readonly sweep: boolean; readonly isDone: boolean };

const HEAD = ['step', 'kind', 'expires (UTC)', 'kept as', 'sweep', 'path'];

/** The ledger of a run, the oldest first, and below it what a person should know of it. */
export function checkpointsText(view: CheckpointsView, sweep: Sweep, colors: Colors): string {
  if (view.rows.length === 0) return 'nothing was saved yet';
  const rows = view.rows.map((row) => [row.name, row.kind, endText(row, colors), row.pinned.join(', '), sweepText(row, colors), row.path]);
  return [table(colors, HEAD, rows, HEAD.length), '', ...remarks(view, sweep, colors)].join('\n');
}

function endText({ expiresAt, gone }: CheckpointRow, colors: Colors): string {
  if (gone !== null) return colors.dim(`${GONE[gone.by]} ${minute(gone.at)}`);
  if (expiresAt === null) return 'never';
  return expiresAt === 'unknown' ? expiresAt : minute(expiresAt);
}

const GONE = { sweep: 'swept', expiry: 'expired', since: 'gone,' } as const;

function sweepText({ wouldSweep, undeleted }: CheckpointRow, colors: Colors): string {
  if (undeleted !== null) return colors.red('not deleted');
  return wouldSweep ? colors.yellow('would go') : '';
}

function remarks(view: CheckpointsView, { sweep, isDone }: Sweep, colors: Colors): string[] {
  const going = view.rows.filter(({ wouldSweep }) => wouldSweep).length;
  const undeleted = view.rows.find((row) => row.undeleted !== null && row.gone === null);
  return [
    view.ttlSeconds === null
      ? 'Saves ask for no end.'
      : `Saves ask for a life of ${days(view.ttlSeconds)}; what is needed is renewed before.`,
    ...(view.nextRenewalAt === null ? [] : [`The next life is renewed at ${minute(view.nextRenewalAt)}.`]),
    ...(view.keepLast === null ? ['Nothing is swept: checkpoints.keep_last is not set.'] : []),
    ...(view.keepLast !== null && going > 0 && !isDone
      ? [`A sweep that keeps the last ${view.keepLast} would delete ${going}${sweep ? '; nothing was deleted: --yes does it' : ''}.`]
      : []),
    ...(sweep && going === 0 ? [isDone ? 'Swept: nothing is left to go.' : 'A sweep would delete nothing.'] : []),
    ...(undeleted ? [colors.red(`The service did not delete ${undeleted.name} (${undeleted.kind}): ${undeleted.undeleted}`)] : []),
    ...(view.warning === null ? [] : [colors.yellow(view.warning)]),
    ...(view.dropped > 0 ? [`${view.dropped} older lines are not kept here; the service may still have them.`] : []),
  ].map((remark) => wrapped(remark, '  '));
}

const minute = (iso: string) => iso.slice(0, 16).replace('T', ' ');

function days(seconds: number): string {
  const hours = seconds / 3600;
  return hours < 48 ? `${+hours.toFixed(1)} h` : `${+(hours / 24).toFixed(1)} days`;
}
