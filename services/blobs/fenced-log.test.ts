import { expect, it } from 'vitest';
import { FencedLog, StaleAttempt } from './fenced-log.ts';
import type { ObjectStore } from './object-store.ts';
import { MemoryObjects } from './testing/memory-objects.ts';

const bytes = (text: string) => new TextEncoder().encode(text);
const texts = (entries: readonly Uint8Array[]) => entries.map((entry) => new TextDecoder().decode(entry));
const opened = async (objects: ObjectStore, name: string) => {
  const log = new FencedLog(objects, 'work/');
  return { log, found: texts(await log.open(() => bytes(name))) };
};

it('a later owner finds everything that was entered, in order', async () => {
  const objects = new MemoryObjects();
  const { log, found } = await opened(objects, 'first');
  expect(found).toEqual([]);
  expect(await Promise.all([log.append(bytes('a')), log.append(bytes('b'))])).toEqual([1, 2]);
  expect((await opened(objects, 'second')).found).toEqual(['first', 'a', 'b']);
  expect((await opened(objects, 'third')).found).toEqual(['first', 'a', 'b', 'second']);
});

it('an owner whose log was taken over can enter nothing more, whoever writes first', async () => {
  const objects = new MemoryObjects();
  const { log: older } = await opened(objects, 'older');
  const { log: newer } = await opened(objects, 'newer');
  await expect(older.append(bytes('late'))).rejects.toBeInstanceOf(StaleAttempt);
  expect(await newer.append(bytes('own'))).toBe(2);
  await expect(older.append(bytes('again'))).rejects.toBeInstanceOf(StaleAttempt);
  expect([older.refusal, newer.refusal]).toEqual([expect.any(StaleAttempt), null]);
  expect((await opened(objects, 'last')).found).toEqual(['older', 'newer', 'own']);
});

it('of many that open at once each becomes owner in turn, and the last one stays', async () => {
  const objects = new MemoryObjects();
  const all = await Promise.all(Array.from({ length: 8 }, (_, i) => opened(objects, `owner ${i}`)));
  const wrote = await Promise.allSettled(all.map(({ log }) => log.append(bytes('mine'))));
  expect(wrote.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  expect(objects.kept.size).toBe(9);
});

it('an entry that was written though its write brought no answer is ours', async () => {
  const objects = new MemoryObjects();
  const { log } = await opened(objects, 'first');
  const create = objects.create.bind(objects);
  objects.create = async (key, entry) => {
    await create(key, entry);
    return false; // a repeat after a lost answer finds its own object
  };
  expect(await log.append(bytes('a'))).toBe(1);
});

it('reads what a listing does not show yet', async () => {
  const objects = new MemoryObjects();
  const { log } = await opened(objects, 'first');
  await log.append(bytes('a'));
  await log.append(bytes('b'));
  objects.list = async function* () {
    yield { key: 'work/000000', bytes: 0, modifiedAtMs: 0 };
  };
  expect((await opened(objects, 'second')).found).toEqual(['first', 'a', 'b']);
});

it('a claim that refuses leaves the log as it was', async () => {
  const objects = new MemoryObjects();
  const { log } = await opened(objects, 'first');
  const other = new FencedLog(objects, 'work/');
  const refuse = (entries: readonly Uint8Array[]) => {
    if (entries.length > 0) throw new Error('not mine');
    return bytes('x');
  };
  await expect(other.open(refuse)).rejects.toThrow('not mine');
  expect(await log.append(bytes('a'))).toBe(1);
});

it.each<[string, (kept: Uint8Array) => Uint8Array]>([
  ['of which a bit turned over', (kept) => kept.with(-1, (kept.at(-1) ?? 0) ^ 1)],
  ['that was cut', (kept) => kept.subarray(0, -1)],
  ['that is empty', () => new Uint8Array()],
])('an entry %s is never given out: its name is told', async (_, damage) => {
  const objects = new MemoryObjects();
  const { log } = await opened(objects, 'first');
  await log.append(bytes('a'));
  await objects.put('work/000001', damage(new Uint8Array((await objects.get('work/000001')) ?? [])));
  await expect(opened(objects, 'second')).rejects.toMatchObject({ name: 'EntryDamaged', message: expect.stringContaining('work/000001') });
});

it('an entry that is gone from the middle is not the end of the log', async () => {
  const objects = new MemoryObjects();
  const { log } = await opened(objects, 'first');
  await log.append(bytes('a'));
  await log.append(bytes('b'));
  await objects.delete('work/000001');
  await expect(opened(objects, 'second')).rejects.toMatchObject({ name: 'EntryDamaged', message: expect.stringContaining('work/000001') });
  expect(await objects.has('work/000001')).toBe(false);
});
