import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execaNode } from 'execa';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type S3Server, startS3Server } from '../../test/support/s3/server.ts';
import type { StoreLocation } from '../settings/index.ts';
import { listed, type ObjectStore } from './object-store.ts';
import { openObjectStore } from './open.ts';

const BUCKET = 'lab';
let server: S3Server;
let folder: string;
beforeAll(async () => {
  server = await startS3Server(BUCKET);
  folder = await mkdtemp(join(tmpdir(), 'objects-'));
  Object.assign(process.env, server.env);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** A new and empty place of each kind of store. */
const PLACES: readonly (readonly [string, () => StoreLocation])[] = [
  ['a folder', () => ({ kind: 'folder', path: join(folder, randomUUID()) })],
  ['S3', () => ({ kind: 's3', bucket: BUCKET, prefix: `team/${randomUUID()}`, endpoint: server.endpoint, region: null })],
  ['S3 without a prefix', () => ({ kind: 's3', bucket: BUCKET, prefix: '', endpoint: server.endpoint, region: null })],
];

const bytes = (text: string) => new TextEncoder().encode(text);

describe.each(PLACES)('objects in %s', (_, newPlace) => {
  let place: StoreLocation;
  let store: ObjectStore;
  beforeEach(async () => {
    place = newPlace();
    store = await openObjectStore({ blobStore: place });
  });
  afterEach(async () => {
    for (const key of await keysBelow('')) await store.delete(key);
  });

  const textAt = async (key: string) => new TextDecoder().decode((await store.get(key)) ?? bytes('nothing'));
  const keysBelow = async (prefix: string) => (await listed(store, prefix)).map(({ key }) => key);

  it('are put, read, replaced and deleted', async () => {
    expect(await store.get('a/b')).toBeNull();
    expect(await store.has('a/b')).toBe(false);
    await store.put('a/b', bytes('one'));
    await store.put('a/b', bytes('two'));
    expect(await textAt('a/b')).toBe('two');
    expect(await store.has('a/b')).toBe(true);
    await store.delete('a/b');
    await store.delete('a/b');
    expect(await store.has('a/b')).toBe(false);
  });

  it('keep every byte, and none at all', async () => {
    const all = Uint8Array.from({ length: 3 << 20 }, (_, i) => (i * 31) % 256);
    await store.put('large', all);
    expect(Buffer.compare((await store.get('large')) ?? bytes(''), all)).toBe(0);
    expect(await store.create('empty', bytes(''))).toBe(true);
    expect((await store.get('empty'))?.length).toBe(0);
  });

  it('that many create at once are made by one, who is told so, and whose bytes are there', async () => {
    const told = await Promise.all(Array.from({ length: 20 }, (_, i) => store.create('k', bytes(`${i}`))));
    expect(told.filter(Boolean)).toHaveLength(1);
    expect(await textAt('k')).toBe(`${told.indexOf(true)}`);
    expect(await store.create('k', bytes('late'))).toBe(false);
    await store.delete('k');
    expect(await store.create('k', bytes('anew'))).toBe(true);
  });

  it('that two processes create at once are each made by one of them', async () => {
    const racers = await Promise.all(['red', 'blue'].map((name) => elsewhere('race', place, name)));
    const won = racers.map(({ stdout }) => JSON.parse(stdout) as number[]);
    expect(won.flat().sort((a, b) => a - b)).toEqual(Array.from({ length: RACES }, (_, i) => i));
    for (const [i, name] of ['red', 'blue'].entries()) for (const race of won[i] ?? []) expect(await textAt(`race/${race}`)).toBe(name);
  });

  it('whose writer is killed in the middle of a put are whole or absent', async () => {
    const writer = elsewhere('put', place, '8');
    await new Promise<void>((resolve) => writer.stdout?.on('data', () => resolve()));
    await new Promise((resolve) => setTimeout(resolve, 30));
    writer.kill('SIGKILL');
    expect((await writer).signal).toBe('SIGKILL');
    const found = await listed(store, '');
    expect(found.map(({ key }) => key)).toContain('put/0');
    for (const entry of found) expect(entry).toMatchObject({ bytes: 8 << 20 });
  });

  it('are listed below a prefix in the order of their keys, with sizes and times', async () => {
    for (const key of ['runs/b', 'runs/a/2', 'runs/a/10', 'runs/a.b/1', 'other', 'runs/A/1']) await store.put(key, bytes(key));
    expect(await keysBelow('')).toEqual(['other', 'runs/A/1', 'runs/a.b/1', 'runs/a/10', 'runs/a/2', 'runs/b']);
    const [first, second] = await listed(store, 'runs/a/');
    expect([first, second]).toMatchObject([{ key: 'runs/a/10', bytes: 9 }, { key: 'runs/a/2' }]);
    expect(Math.abs((first?.modifiedAtMs ?? 0) - Date.now())).toBeLessThan(60_000);
    expect(await keysBelow('nowhere/')).toEqual([]);
  });

  it('are listed to the last, however many pages they fill', async () => {
    const keys = Array.from({ length: 50 }, (_, i) => `many/${String(i).padStart(4, '0')}`);
    await Promise.all(keys.map((key) => store.put(key, bytes('x'))));
    expect(await keysBelow('many/')).toEqual(keys);
  });

  it.each(['', '/', 'a//b', '../a', 'a/..', 'a b', 'a/'])('have not the key %j', async (key) => {
    const refused = { name: 'BadObjectKey' };
    await expect(store.put(key, bytes(''))).rejects.toMatchObject(refused);
    await expect(store.create(key, bytes(''))).rejects.toMatchObject(refused);
    await expect(store.get(key)).rejects.toMatchObject(refused);
  });
});

const RACES = 40;

/** Runs `object-store-writer.ts` as a process of its own. */
const elsewhere = (what: 'race' | 'put', place: StoreLocation, how: string) =>
  execaNode(join(import.meta.dirname, 'testing/object-store-writer.ts'), [what, JSON.stringify(place), how, `${RACES}`], {
    reject: false,
    timeout: 30_000,
  });
