import { describe, expect, it } from 'vitest';
import { findAgent } from './agents.ts';

const nobody = () => Promise.reject(new Error('the store was asked'));

describe('findAgent', () => {
  it.each(['turn', 'turn@'])('%s is the built-in agent, whatever is stored', async (given) => {
    expect(await findAgent(given, nobody)).toMatchObject({ name: 'turn', ref: 'builtin' });
  });

  it.each([
    ['mine', 'mine', null],
    ['mine@', 'mine', null],
    ['mine@v1', 'mine', 'v1'],
    ['turn@best', 'turn', 'best'],
    ['constructor', 'constructor', null],
  ])('%s is asked of the store', async (given, name, ref) => {
    const asked: unknown[] = [];
    const found = await findAgent(given, async (...args) => {
      asked.push(...args);
      return { version: 3, document: { runtime: 'turn', kwargs: { stop_word: 'bye' } } };
    });
    expect(asked).toEqual([name, ref]);
    expect(found).toMatchObject({ name, ref: 'v3', kwargs: { stop_word: 'bye' } });
  });

  it('refuses a runtime that is not here', async () => {
    const stored = async () => ({ version: 1, document: { runtime: 'toString', kwargs: {} } });
    await expect(findAgent('mine', stored)).rejects.toMatchObject({ kind: 'wrong_runtime' });
  });

  const nothing = () => Promise.reject(Object.assign(new Error('there is no such agent'), { kind: 'no_such_name' }));

  it.each([
    ['pi', 'not_built', 'agent pi is not built yet; there is: turn'],
    ['terminus-2@v1', 'not_built', 'agent terminus-2 is not built yet; there is: turn'],
    ['turn@v9', 'no_version', 'agent turn has no version v9: no version is stored, there is only the built-in turn'],
    ['mine', 'no_such_name', 'there is no such agent'],
  ])('%s, of which nothing is stored, is %s', async (given, kind, message) => {
    await expect(findAgent(given, nothing)).rejects.toMatchObject({ kind, message });
  });

  it('pi is never a stored agent', async () => {
    await expect(findAgent('pi', nobody)).rejects.toMatchObject({ kind: 'not_built' });
  });

  it('passes on what else the store says of a known name', async () => {
    const damaged = Object.assign(new Error('torn'), { kind: 'no_such_version' });
    await expect(findAgent('turn@v9', () => Promise.reject(damaged))).rejects.toBe(damaged);
  });
});
