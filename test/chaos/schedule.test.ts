import { expect, test } from 'vitest';
import { SIGNALS, scheduleOf, TARGETS } from './schedule.ts';

test('the schedule follows from the seed', () => {
  expect(scheduleOf(20, 3)).toEqual(scheduleOf(20, 3));
  expect(scheduleOf(20, 3)).not.toEqual(scheduleOf(20, 4));
});

test.each([1, 2, 3, 4, 5])('seed %i: twenty kills meet every target with every signal', (seed) => {
  const met = new Set(scheduleOf(20, seed).map(({ target, signal }) => `${target} ${signal}`));
  expect(met.size).toBe(TARGETS.length * SIGNALS.length);
});

test('some kills come while an update is pending, however few there are', () => {
  for (let seed = 0; seed < 50; seed++)
    for (const kills of [1, 2, 3, 20]) {
      const pending = scheduleOf(kills, seed).filter(({ moment }) => moment === 'optim_step');
      expect(pending.length).toBeGreaterThanOrEqual(kills === 20 ? 7 : 1);
      expect(pending.every(({ target, delayMs }) => target !== 'runner' && delayMs < 800)).toBe(true);
    }
});
