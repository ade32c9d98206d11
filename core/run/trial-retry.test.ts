import { expect, it } from 'vitest';
import { mayRetry } from './trial-retry.ts';

const retriesOf = (retry: 'never' | 'once' | 'again', allowed: number) =>
  [0, 1, 2, 3].filter((retried) => mayRetry({ executed: false, retry }, retried, allowed)).length;

it('a trial is tried again while it is worth it and the run allows it', () => {
  expect((['never', 'once', 'again'] as const).map((retry) => retriesOf(retry, 2))).toEqual([0, 1, 2]);
  expect((['never', 'once', 'again'] as const).map((retry) => retriesOf(retry, 0))).toEqual([0, 0, 0]);
});

it('a trial that counts is never tried again', () => {
  expect(mayRetry({ executed: true, retry: 'again' }, 0, 5)).toBe(false);
});
