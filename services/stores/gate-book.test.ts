import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { GateBook } from './gate-book.ts';

it('counts the gates that a protocol had before, each run once', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gates-'));
  const book = new GateBook(join(folder, 'gates.jsonl'));
  expect(await book.note('p', 'run-a')).toBe(0);
  expect(await book.note('q', 'run-b')).toBe(0);
  expect(await book.note('p', 'run-c')).toBe(1);
  expect(await book.note('p', 'run-a')).toBe(0);
  await rm(folder, { recursive: true });
});
