import Table from 'cli-table3';
import type { Colors } from '../console.ts';

/** A plain table: a dim head, a rule below it, columns after the first to the right when they are numbers. */
export function table(colors: Colors, head: readonly string[], rows: readonly (readonly string[])[], rightFrom = 1): string {
  const made = new Table({
    head: head.map((text) => colors.dim(text)),
    colAligns: head.map((_, column) => (column >= rightFrom ? 'right' : 'left')),
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
    chars: BORDERLESS,
  });
  made.push(...rows.map((row) => [...row]));
  return made
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

const NONE = '';
const BORDERLESS = {
  top: NONE,
  'top-mid': NONE,
  'top-left': NONE,
  'top-right': NONE,
  bottom: NONE,
  'bottom-mid': NONE,
  'bottom-left': NONE,
  'bottom-right': NONE,
  left: NONE,
  'left-mid': NONE,
  mid: NONE,
  'mid-mid': NONE,
  right: NONE,
  'right-mid': NONE,
  middle: NONE,
};
