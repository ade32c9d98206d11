import { mkdtemp, rm, writeFile } from 'node:fs/promises';
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

it('a half-written line at the end is skipped, and the next one begins on a line of its own', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gates-'));
  const file = join(folder, 'gates.jsonl');
  await writeFile(file, '{"protocolHash":"p","runId":"run-a"}\nnull\n{"protocolHash":"p","ru');
  const book = new GateBook(file);
  expect(await book.note('p', 'run-b')).toBe(1);
  expect(await book.note('p', 'run-c')).toBe(2);
  expect(await book.note('p', 'run-b')).toBe(1);
  await rm(folder, { recursive: true });
});
