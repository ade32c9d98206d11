import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { S3_ENV, type S3Server, startS3Server } from '../../test/support/s3/server.ts';
import type { StoreLocation } from '../settings/index.ts';
import { BlobStore } from './blob-store.ts';
import { collectRun, type GcOrder, judge, type KeptRun, keptRuns, type RunState } from './gc.ts';
import { listed, type ObjectStore } from './object-store.ts';
import { openObjectStore } from './open.ts';
import { claimKey, noteReads } from './run-keys.ts';

let server: S3Server;
let folder: string;
beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  server = await startS3Server('lab');
  folder = await mkdtemp(join(tmpdir(), 'gc-'));
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const bytes = (length: number) => new Uint8Array(length);

const PLACES: readonly (readonly [string, () => StoreLocation])[] = [
  ['a folder', () => ({ kind: 'folder', path: folder })],
  ['S3', () => ({ kind: 's3', bucket: 'lab', prefix: 'team', endpoint: server.endpoint, region: null })],
];

describe.each(PLACES)('in %s', (_, place) => {
  it('runs are counted and collected one by one; claims and what is of no run stay', async () => {
    const objects: ObjectStore = await openObjectStore({ blobStore: place() });
    const blobs = new BlobStore(objects);
    for (const runId of ['a', 'a.b', 'b']) await objects.create(claimKey(runId), bytes(9));
    await objects.create('gates/p/000000', bytes(1));
    const [mine, other] = [await blobs.of('a').put(bytes(100)), await blobs.of('a.b').put(bytes(10))];
    await objects.create('runs/a/rows/000001/0001', bytes(20));
    await noteReads(objects, 'a.b', ['a', 'a.b']);

    const kept = await keptRuns(objects);
    expect(kept).toMatchObject([
      { runId: 'a.b', objects: 2, bytes: 10, readBy: [] },
      { runId: 'a', objects: 2, bytes: 120, readBy: ['a.b'] },
    ]);
    expect(Math.abs((kept[0]?.newestAtMs ?? 0) - Date.now())).toBeLessThan(60_000);

    await collectRun(objects, 'a');
    expect(await blobs.has(mine)).toBe(false);
    expect(await blobs.has(other)).toBe(true);
    expect(await objects.create(claimKey('a'), bytes(1))).toBe(false);
    expect(await keptRuns(objects)).toMatchObject([{ runId: 'a.b' }]);
    expect((await listed(objects, 'gates/')).length).toBe(1);
    await collectRun(objects, 'a');
  });
});

const DAY_MS = 86_400_000;
const kept = (runId: string, known: Partial<KeptRun> = {}): KeptRun => ({
  runId,
  objects: 1,
  bytes: 1,
  newestAtMs: 0,
  readBy: [],
  ...known,
});
const STATES: Readonly<Record<string, RunState>> = { going: 'running', gone: 'unknown' };
const stateOf = (runId: string) => STATES[runId] ?? 'ended';
const ALL: GcOrder = { runIds: null, writtenBeforeMs: null };
const reasons = (runs: readonly KeptRun[], order: GcOrder) =>
  Object.fromEntries(judge(runs, stateOf, order).map(({ runId, kept }) => [runId, kept]));

describe('an order', () => {
  it('takes ended runs, never one that runs, and one that the server does not know only by name', () => {
    const runs = [kept('done'), kept('going'), kept('gone')];
    expect(reasons(runs, ALL)).toEqual({ done: null, going: 'running', gone: expect.stringMatching(/^unknown to this server/) });
    const named = { ...ALL, runIds: ['going', 'gone'] };
    expect(reasons(runs, named)).toEqual({ done: 'not named', going: 'running', gone: null });
  });

  it('may take only what was not written to of late', () => {
    const runs = [kept('old', { newestAtMs: 1 * DAY_MS }), kept('new', { newestAtMs: 3 * DAY_MS })];
    expect(reasons(runs, { ...ALL, writtenBeforeMs: 3 * DAY_MS })).toEqual({ old: null, new: 'too new' });
    expect(reasons(runs, { runIds: ['new'], writtenBeforeMs: 3 * DAY_MS })).toEqual({ old: 'not named', new: 'too new' });
  });

  it('keeps what a run reads that stays, along the chain, and lets go what only collected runs read', () => {
    const chain = [kept('a', { readBy: ['b'] }), kept('b', { readBy: ['going'] }), kept('c', { readBy: ['d'] }), kept('d'), kept('going')];
    expect(reasons(chain, ALL)).toEqual({ a: 'read by b', b: 'read by going', c: null, d: null, going: 'running' });
    expect(reasons(chain, { ...ALL, runIds: ['c'] })).toMatchObject({ c: 'read by d' });
  });

  it('is not held up by a reader that was collected before', () => {
    expect(reasons([kept('a', { readBy: ['collected'] })], ALL)).toEqual({ a: null });
  });
});
