import { describe, expect, it } from 'vitest';
import { findAgent } from './agents.ts';

const nobody = () => Promise.reject(new Error('the store was asked'));

describe('findAgent', () => {
  it.each([
    ['turn', 'turn', 'turn'],
    ['turn@', 'turn', 'turn'],
    ['pi', 'pi', 'terminus-2'],
    ['pi@', 'pi', 'terminus-2'],
  ])('%s is the built-in agent, whatever is stored', async (given, name, runtime) => {
    expect(await findAgent(given, nobody)).toMatchObject({ name, runtime, ref: 'builtin' });
  });

  it.each([
    ['mine', 'mine', null],
    ['mine@', 'mine', null],
    ['mine@v1', 'mine', 'v1'],
    ['terminus-2', 'terminus-2', null],
    ['constructor', 'constructor', null],
  ])('%s is asked of the store', async (given, name, ref) => {
    const asked: unknown[] = [];
    const found = await findAgent(given, async (...args) => {
      asked.push(...args);
      return { version: 3, document: { runtime: 'turn', kwargs: { stop_word: 'bye' }, env: {} } };
    });
    expect(asked).toEqual([name, ref]);
    expect(found).toMatchObject({ name, ref: 'v3', kwargs: { stop_word: 'bye' } });
  });

  it('refuses a runtime that is not here', async () => {
    const stored = async () => ({ version: 1, document: { runtime: 'toString', foreign: true as const } });
    await expect(findAgent('mine', stored)).rejects.toMatchObject({ kind: 'wrong_runtime', message: expect.stringContaining('toString') });
  });

  const nothing = () => Promise.reject(Object.assign(new Error('there is no such agent'), { kind: 'no_such_name' }));

  it.each([
    ['terminus-2@v1', 'unknown', "no agent is stored as terminus-2; harbor's agent of that name is built in, as pi"],
    ['turn@v9', 'no_version', 'agent turn has no version v9: turn is always the built-in agent'],
    ['pi@champion', 'no_version', 'agent pi has no version champion: pi is always the built-in agent'],
    ['mine', 'no_such_name', 'there is no such agent'],
  ])('%s, of which nothing is stored, is %s', async (given, kind, message) => {
    await expect(findAgent(given, nothing)).rejects.toMatchObject({ kind, message });
  });

  it('passes on what else the store says of a known name', async () => {
    const damaged = Object.assign(new Error('torn'), { kind: 'no_such_version' });
    await expect(findAgent('terminus-2@v9', () => Promise.reject(damaged))).rejects.toBe(damaged);
  });
});
