import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { FileObjectStore } from '../blobs/file-object-store.ts';
import { GateBook } from './gate-book.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gates-'));
});
afterEach(() => rm(folder, { recursive: true }));

const book = () => new GateBook(new FileObjectStore(folder));

it('counts the gates that a protocol had before, each run once, whoever writes', async () => {
  expect(await book().note('p', 'run-a')).toBe(0);
  expect(await book().note('q', 'run-b')).toBe(0);
  expect(await book().note('p', 'run-c')).toBe(1);
  expect(await book().note('p', 'run-a')).toBe(0);
});

it('of gates that come at once each has a place of its own, and keeps it', async () => {
  const runs = Array.from({ length: 8 }, (_, i) => `run-${i}`);
  const places = await Promise.all(runs.map((runId) => book().note('p', runId)));
  expect([...places].sort()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(await Promise.all(runs.map((runId) => book().note('p', runId)))).toEqual(places);
});
