import { expect, it, vi } from 'vitest';
import { SessionLost, type TinkerClient } from '../services/tinker/index.ts';
import { ModelAccess } from './model-access.ts';

const MODEL = { kind: 'base', model: 'student', version: 'student' } as const;

/** Sessions that are numbered, and the access to them; a sampler is its session's number. */
function numberedSessions() {
  const opened: number[] = [];
  const models = new ModelAccess(async () => {
    const number = opened.push(opened.length + 1);
    return { sessionId: `session-${number}`, sampler: async () => number } as unknown as TinkerClient;
  });
  const sessionOf = () => models.withSampler(MODEL, async (sampler) => sampler as unknown as number);
  return { opened, models, sessionOf };
}
const lost = () => new SessionLost('gone', { call: 'asample', status: 410 });

it('opens one session for all calls, and another one when the service has lost it', async () => {
  const { opened, models, sessionOf } = numberedSessions();
  expect(await Promise.all([sessionOf(), sessionOf()])).toEqual([1, 1]);
  await expect(models.withClient(() => Promise.reject(lost()))).rejects.toBeInstanceOf(SessionLost);
  expect(await sessionOf()).toBe(2);
  expect(opened).toEqual([1, 2]);
});

it('a call that hears late of a lost session leaves the new one alone', async () => {
  const { opened, models, sessionOf } = numberedSessions();
  const late = Promise.withResolvers<never>();
  const waiting = models.withSampler(MODEL, () => late.promise);
  await expect(models.withSampler(MODEL, () => Promise.reject(lost()))).rejects.toBeInstanceOf(SessionLost);
  expect(await sessionOf()).toBe(2);
  late.reject(lost());
  await expect(waiting).rejects.toBeInstanceOf(SessionLost);
  expect(await sessionOf()).toBe(2);
  expect(opened).toEqual([1, 2]);
});

it('tries to connect again after a connection that failed', async () => {
  let tries = 0;
  const models = new ModelAccess(async () => {
    if (++tries === 1) throw new Error('refused');
    return { sessionId: 'session-2' } as unknown as TinkerClient;
  });
  await expect(models.withClient(async (client) => client.sessionId)).rejects.toThrow('refused');
  expect(await models.withClient(async (client) => client.sessionId)).toBe('session-2');
});

it('closes a lost client once the last call on it has ended', async () => {
  const close = vi.fn(async () => {});
  const models = new ModelAccess(async () => ({ sessionId: 's', close }) as unknown as TinkerClient);
  const slow = Promise.withResolvers<string>();
  const other = models.withClient(() => slow.promise);
  await expect(models.withClient(() => Promise.reject(lost()))).rejects.toBeInstanceOf(SessionLost);
  expect(close).not.toHaveBeenCalled();
  slow.resolve('done');
  expect(await other).toBe('done');
  await vi.waitFor(() => expect(close).toHaveBeenCalledTimes(1));
});
