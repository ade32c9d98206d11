import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { seededRandom, shuffled } from './seeded.ts';
import { sha256 } from './sha256.ts';

it.each([0, 1, 55, 56, 63, 64, 65, 119, 120, 1000])('sha256 of %i bytes', (length) => {
  const bytes = Uint8Array.from({ length }, (_, i) => (i * 37) % 256);
  expect(Array.from(sha256(bytes))).toEqual([...createHash('sha256').update(bytes).digest()]);
});

it('draws every value of a small range about equally often', () => {
  const random = seededRandom(42n);
  const counts = [0, 0, 0, 0, 0];
  for (let i = 0; i < 50_000; i++) {
    const n = random.below(5);
    counts[n] = (counts[n] as number) + 1;
  }
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(500);
});

it('shuffles the same way for the same seed, another way for another', () => {
  const items = Array.from({ length: 20 }, (_, i) => i);
  expect(shuffled(items, seededRandom(7n))).toEqual(shuffled(items, seededRandom(7n)));
  expect(shuffled(items, seededRandom(7n))).not.toEqual(shuffled(items, seededRandom(8n)));
  expect(shuffled(items, seededRandom(7n)).toSorted((a, b) => a - b)).toEqual(items);
});
