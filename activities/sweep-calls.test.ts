import { expect, it } from 'vitest';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { sweepAll, sweepBatch, sweepStepsBefore } from './sweep-calls.ts';

const BOOKS = [
  'preflight',
  'p-et-000-0',
  'p-et-000-0-r1',
  'p-eb-001-2',
  'p-w-000-0',
  'p-s0008-000-1',
  'p-s0009-000-0-r2',
  'p-s0010-012-3',
  'p-s0011-000-0',
];

async function left(sweep: (objects: MemoryObjects) => Promise<void>): Promise<string[]> {
  const objects = new MemoryObjects();
  const other = 'runs/other/calls/p-s0001-000-0/sample/000000';
  const blob = 'runs/run/blobs/aa/bb';
  for (const of of BOOKS)
    for (const kind of ['sample', 'score']) await objects.put(`runs/run/calls/${of}/${kind}/000000`, new Uint8Array());
  for (const key of [other, blob]) await objects.put(key, new Uint8Array());
  await sweep(objects);
  expect([objects.kept.has(other), objects.kept.has(blob)]).toEqual([true, true]);
  return BOOKS.filter((of) => objects.kept.has(`runs/run/calls/${of}/sample/000000`));
}

it('a closed step removes the books of those before it, and of no trial that may still be asked for', async () =>
  expect(await left((objects) => sweepStepsBefore(objects, 'run', 10))).toEqual(
    BOOKS.filter((of) => !['preflight', 'p-s0008-000-1', 'p-s0009-000-0-r2'].includes(of)),
  ));

it('a closed evaluation removes its own, those of tried trials included', async () =>
  expect(await left((objects) => sweepBatch(objects, 'run', ['p-et-000-0-r1']))).toEqual(BOOKS.filter((of) => !of.startsWith('p-et'))));

it('a run that ended removes all of its own', async () => expect(await left((objects) => sweepAll(objects, 'run'))).toEqual([]));
