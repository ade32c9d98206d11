import type { Judged } from '../../services/blobs/gc.ts';
import type { Colors } from '../console.ts';
import { bytes, count } from './format.ts';
import { table } from './table.ts';

type Listed = Omit<Judged, 'kept'>;

/** What the store keeps, a run a line, and the sum of it. */
export function storeTable(runs: readonly Listed[], colors: Colors): string {
  const rows = runs.map((run) => cells(run, colors));
  return `${table(colors, HEAD, rows, 2)}\n${sumText(runs)}`;
}

/** The same with what becomes of each. */
export function gcTable(runs: readonly Judged[], colors: Colors): string {
  const rows = runs.map((run) => [run.kept === null ? colors.yellow('remove') : `keep: ${run.kept}`, ...cells(run, colors)]);
  return table(colors, ['', ...HEAD], rows, 3);
}

export function sumText(runs: readonly Listed[]): string {
  const sum = (of: (run: Listed) => number) => runs.reduce((total, run) => total + of(run), 0);
  return `${count(runs.length)} runs, ${count(sum((run) => run.objects))} objects, ${bytes(sum((run) => run.bytes))}`;
}

const HEAD = ['run', 'state', 'objects', 'bytes', 'newest (UTC)'];

function cells({ runId, state, objects, bytes: size, newestAtMs }: Listed, colors: Colors): string[] {
  const newest = new Date(newestAtMs).toISOString().slice(0, 16).replace('T', ' ');
  return [runId, state === 'running' ? colors.yellow(state) : state, count(objects), bytes(size), newest];
}
