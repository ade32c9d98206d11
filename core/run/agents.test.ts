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

  it('refuses a runtime that is not here, and pi until it is built', async () => {
    const stored = async () => ({ version: 1, document: { runtime: 'toString', kwargs: {} } });
    await expect(findAgent('mine', stored)).rejects.toMatchObject({ kind: 'wrong_runtime' });
    await expect(findAgent('pi', nobody)).rejects.toMatchObject({ kind: 'not_built' });
  });
});
