import { MockActivityEnvironment } from '@temporalio/testing';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { beatAlways, whileBeating } from './beating.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it('beats as long as the work takes, more often than the shortest heartbeat timeout, and no longer', async () => {
  const environment = new MockActivityEnvironment();
  let beats = 0;
  environment.on('heartbeat', () => beats++);
  const work = Promise.withResolvers<string>();
  const beating = environment.run(() => whileBeating(() => work.promise));
  await vi.advanceTimersByTimeAsync(30_000);
  expect(beats).toBeGreaterThanOrEqual(6);
  work.resolve('done');
  expect(await beating).toBe('done');
  const before = beats;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(beats).toBe(before);
});

it('stops when the work fails', async () => {
  const environment = new MockActivityEnvironment();
  const outcome = await environment.run(() => whileBeating(() => Promise.reject(new Error('no'))).catch((error: Error) => error.message));
  expect(outcome).toBe('no');
  expect(vi.getTimerCount()).toBe(0);
});

it('sends with each beat what the work waits for then', async () => {
  const environment = new MockActivityEnvironment();
  const seen: unknown[] = [];
  environment.on('heartbeat', (details: unknown) => seen.push(details));
  const work = Promise.withResolvers<void>();
  let waits = 0;
  const beating = environment.run(() =>
    whileBeating(
      () => work.promise,
      () => ({ waits: ++waits }),
    ),
  );
  await vi.advanceTimersByTimeAsync(2_500);
  work.resolve();
  await beating;
  expect(seen).toEqual([{ waits: 1 }, { waits: 2 }]);
});

it('an activity that thinks of nothing beats as well, and one that beats by itself is left alone', async () => {
  const environment = new MockActivityEnvironment({}, { interceptors: [beatAlways] });
  const seen: unknown[] = [];
  environment.on('heartbeat', (details: unknown) => seen.push(details));
  const [silent, busy] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const running = environment.run(async () => {
    await silent.promise;
    await whileBeating(
      () => busy.promise,
      () => 'own',
    );
  });
  await vi.advanceTimersByTimeAsync(2_500);
  expect(seen).toEqual([undefined, undefined]);
  silent.resolve();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(new Set(seen.slice(2))).toEqual(new Set(['own']));
  busy.resolve();
  await running;
  expect(vi.getTimerCount()).toBe(0);
});
