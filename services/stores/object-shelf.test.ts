import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FileObjectStore } from '../blobs/file-object-store.ts';
import type { ObjectStore } from '../blobs/object-store.ts';
import { FolderShelf } from './folder-shelf.ts';
import { ObjectShelf } from './object-shelf.ts';
import { VersionStore } from './version-store.ts';

let root: string;
let objects: ObjectStore;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'shelf-'));
  objects = new FileObjectStore(join(root, 'objects'));
});
afterEach(() => rm(root, { recursive: true }));

const SHELVES = [
  ['folders', () => new FolderShelf(join(root, 'adapters'))],
  ['objects', () => new ObjectShelf(objects, 'adapters', 's3://lab/')],
] as const;

const order = (key: string, more = {}) => ({
  name: 'turn',
  key,
  files: (version: number) => ({ 'card.md': `${key} ${version}` }),
  ...more,
});

describe.each(SHELVES)('versions as %s', (_, shelf) => {
  const store = () => new VersionStore(shelf(), 'adapter');

  it('are numbered, read, and not saved twice', async () => {
    expect((await store().save(order('a'))).version).toBe(1);
    expect((await store().save(order('b'))).version).toBe(2);
    expect(await store().save(order('a', { alias: null }))).toMatchObject({ version: 1 });
    expect(await store().read('turn', 2, 'card.md')).toBe('b 2');
    expect((await store().resolve('turn', null)).version).toBe(2);
    expect(await store().names()).toEqual(['turn']);
  });

  it('have their aliases moved', async () => {
    await store().save(order('a'));
    await store().save(order('b', { alias: 'good' }));
    await store().setAlias('turn', 'champion', 2);
    expect(Object.fromEntries(await store().aliases('turn'))).toEqual({ champion: 2, good: 2 });
    await expect(store().setAlias('turn', 'champion', 3)).rejects.toMatchObject({ kind: 'no_such_version' });
    await expect(store().resolve('other', null)).rejects.toMatchObject({ kind: 'no_such_name' });
  });

  it('that are saved at once have numbers of their own', async () => {
    const keys = Array.from({ length: 6 }, (_, i) => `run-${i}`);
    const saved = await Promise.all(keys.map((key) => store().save(order(key, { alias: null }))));
    expect(saved.map(({ version }) => version).sort()).toEqual([1, 2, 3, 4, 5, 6]);
    for (const [i, { version }] of saved.entries()) expect(await store().read('turn', version, 'card.md')).toBe(`run-${i} ${version}`);
  });
});

describe('versions as objects', () => {
  const store = () => new VersionStore(new ObjectShelf(objects, 'adapters', 's3://lab/'), 'adapter');

  it('say where they are', async () => {
    expect((await store().save(order('a'))).path).toBe('s3://lab/adapters/turn/v1');
  });

  it('lose no alias to another writer', async () => {
    await store().save(order('a'));
    const names = Array.from({ length: 6 }, (_, i) => `alias-${i}`);
    await Promise.all(names.map((alias) => store().setAlias('turn', alias, 1)));
    expect([...(await store().aliases('turn')).keys()].sort()).toEqual([...names, 'champion']);
  });

  it('whose writer died are seen by nobody, keep their number, and are completed by the same key', async () => {
    const create = objects.create.bind(objects);
    objects.create = async (key, bytes) => {
      if (key.endsWith('/whole')) throw new Error('killed');
      return create(key, bytes);
    };
    await expect(store().save(order('a'))).rejects.toThrow('killed');
    objects.create = create;
    await expect(store().resolve('turn', null)).rejects.toMatchObject({ kind: 'no_such_name' });
    expect((await store().save(order('b'))).version).toBe(2);
    expect((await store().save(order('a', { alias: null }))).version).toBe(1);
    expect(await store().read('turn', 1, 'card.md')).toBe('a 1');
  });

  it('never get a number again whose objects were removed', async () => {
    await store().save(order('a'));
    for (const file of ['made-from.txt', 'card.md', 'whole']) await objects.delete(`adapters/turn/v1/${file}`);
    expect((await store().save(order('b'))).version).toBe(2);
  });
});
