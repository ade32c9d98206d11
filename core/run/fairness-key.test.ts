import { expect, it } from 'vitest';
import { fairnessKey } from './fairness-key.ts';

it('is the id of the run where that is short enough, in bytes', () => {
  expect(fairnessKey('a'.repeat(64))).toBe('a'.repeat(64));
  expect(fairnessKey('ä'.repeat(32))).toBe('ä'.repeat(32));
});

it('is a digest of 64 bytes where it is not, another one for each id', () => {
  const keys = ['a'.repeat(65), `b${'a'.repeat(64)}`, 'ä'.repeat(33)].map(fairnessKey);
  for (const key of keys) expect(key).toMatch(/^[0-9a-f]{64}$/);
  expect(new Set(keys).size).toBe(3);
});
