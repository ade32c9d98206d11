import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ERROR_STATUS } from '../services/gateway/error-codes.ts';
import { WireRequest } from '../services/gateway/wire-schema.ts';

const PAGE = readFileSync(join(import.meta.dirname, 'gateway.md'), 'utf8');

/** The rows below the table head that starts with these words, as cells. */
function rowsUnder(head: string): string[][] {
  const rows = PAGE.slice(PAGE.indexOf(head)).split('\n').slice(2);
  const end = rows.findIndex((row) => !row.startsWith('|'));
  return rows.slice(0, end).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

it('lists every error code with its status', () => {
  const listed = rowsUnder('| code ').map(([code = '', status]) => [code.replaceAll('`', ''), Number(status)]);
  expect(Object.fromEntries(listed)).toEqual(ERROR_STATUS);
});

it('explains every field of a request that is read', () => {
  const explained = rowsUnder('| field ').flatMap(([fields = '']) => [...fields.matchAll(/`(\w+)/g)].map(([, name]) => name));
  expect(explained).toEqual(expect.arrayContaining(Object.keys(WireRequest.shape)));
});
