import { expect, it } from 'vitest';
import type { BlobRef } from '../core/ids.ts';
import { BlobStore } from '../services/blobs/blob-store.ts';
import { MemoryObjects } from '../services/blobs/testing/memory-objects.ts';
import { type RunRecord, RunRecords } from './run-records.ts';

it('reads a record once while it is in use, and forgets those of runs of long ago', async () => {
  const objects = new MemoryObjects();
  const records = new RunRecords(new BlobStore(objects));
  const refs = await Promise.all(Array.from({ length: 60 }, (_, i) => records.pin({ runId: `run-${i}` } as RunRecord)));
  const reads: string[] = [];
  const { get } = objects;
  objects.get = async (key) => {
    reads.push(key.split('/')[1] ?? '');
    return get(key);
  };
  const [first, ...others] = refs as [BlobRef, ...BlobRef[]];
  for (const other of others) {
    expect((await records.load(first)).runId).toBe('run-0');
    await records.load(other);
  }
  expect(reads).toEqual(refs.map((_, i) => `run-${i}`));
  await records.load(others[0] as BlobRef);
  expect(reads.at(-1)).toBe('run-1');
  expect(reads).toHaveLength(61);
});

it('a record that could not be read is read again', async () => {
  const objects = new MemoryObjects();
  const records = new RunRecords(new BlobStore(objects));
  const ref = await records.pin({ runId: 'run' } as RunRecord);
  const { get } = objects;
  objects.get = async () => Promise.reject(new Error('away'));
  await expect(records.load(ref)).rejects.toThrow('away');
  objects.get = get;
  expect((await records.load(ref)).runId).toBe('run');
});
