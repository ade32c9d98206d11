import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { MESSAGES } from '../core/run/decision.ts';
import { WAIT_KINDS } from '../core/run/phase.ts';

const PAGE = readFileSync(join(import.meta.dirname, 'messages.md'), 'utf8');

/** The names in the first column of the table under this head. */
function tableOf(head: string): string[] {
  const rows = PAGE.slice(PAGE.indexOf(head)).split('\n').slice(2);
  const own = rows.slice(
    0,
    rows.findIndex((row) => !row.startsWith('|')),
  );
  return own.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name = '']) => name));
}

it('names every message that a run takes', () => {
  expect(tableOf('| name              | extra fields').toSorted()).toEqual(MESSAGES.toSorted());
});

it('names every kind of question that a run asks', () => {
  expect(tableOf('| kind        | asked when').toSorted()).toEqual(WAIT_KINDS.toSorted());
});
