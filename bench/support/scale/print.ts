import { tableOf } from '../table.ts';
import { type OfType, type Payload, SERVER_LIMITS } from './histories.ts';
import type { WorkerReport } from './worker.ts';

export type Totals = {
  readonly types: readonly OfType[];
  readonly inAll: number;
  readonly wallMs: number;
  readonly reports: readonly WorkerReport[];
  readonly largest: Payload;
  readonly dbBytes: number;
};

export function printTypes(types: readonly OfType[]): void {
  const table = tableOf(
    ['workflow', 'executions', 'events', 'MB', 'most events', '% of limit', 'most MB', '% of limit'],
    ['left', 'right', 'right', 'right', 'right', 'right', 'right', 'right'],
  );
  for (const { type, executions, events, bytes, mostEvents, mostBytes } of types)
    table.push([
      type,
      executions,
      events,
      megabytes(bytes),
      mostEvents,
      share(mostEvents, SERVER_LIMITS.events),
      megabytes(mostBytes),
      share(mostBytes, SERVER_LIMITS.bytes),
    ]);
  console.log(table.toString());
}

export function printKinds(kinds: ReadonlyMap<string, ReadonlyMap<string, number>>): void {
  for (const [type, counts] of kinds) {
    const all = [...counts.values()].reduce((sum, times) => sum + times, 0);
    const most = [...counts].sort(([, a], [, b]) => b - a).slice(0, 8);
    console.log(
      `${type}: ${most.map(([kind, times]) => `${kind.replace('EventAttributes', '')} ${((100 * times) / all).toFixed(0)} %`).join(', ')}`,
    );
  }
}

export function printTotals({ types, inAll, wallMs, reports, largest, dbBytes }: Totals): void {
  const sum = (of: (report: WorkerReport) => number) => reports.reduce((total, report) => total + of(report), 0);
  const [events, bytes] = [types.reduce((total, type) => total + type.events, 0), types.reduce((total, type) => total + type.bytes, 0)];
  const table = tableOf(['', ''], ['left', 'right']);
  table.push(['events per trial', (events / inAll).toFixed(1)]);
  table.push(['bytes of history per trial', (bytes / inAll).toFixed(0)]);
  table.push(['wall per trial, ms', (wallMs / inAll).toFixed(1)]);
  table.push(['blob puts per trial', (sum(({ puts }) => puts) / inAll).toFixed(2)]);
  table.push(['blob bytes per trial', (sum(({ putBytes }) => putBytes) / inAll).toFixed(0)]);
  table.push(['worker CPU per trial, ms', ((1000 * sum(({ cpuSeconds }) => cpuSeconds)) / inAll).toFixed(1)]);
  table.push(['largest worker, MB', megabytes(Math.max(...reports.map(({ rssBytes }) => rssBytes)))]);
  table.push(['server database, MB', megabytes(dbBytes)]);
  table.push([`largest message (${largest.of})`, `${largest.bytes} bytes, ${share(largest.bytes, SERVER_LIMITS.payloadBytes)}`]);
  console.log(table.toString());
}

/** Whether a history or a message passes half of what the server takes. */
export const isOver = (types: readonly OfType[], largest: Payload) =>
  largest.bytes > SERVER_LIMITS.payloadBytes / 2 ||
  types.some(({ mostEvents, mostBytes }) => mostEvents > SERVER_LIMITS.events / 2 || mostBytes > SERVER_LIMITS.bytes / 2);

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
const share = (part: number, whole: number) => `${((100 * part) / whole).toFixed(1)} %`;
