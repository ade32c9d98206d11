import { describe, expect, it } from 'vitest';
import { exponentials, heap, matmul, reserve } from './heap.ts';
import { uniformStream } from './random.ts';

const uniform = uniformStream(7);
const fill = (at: number, count: number) => {
  for (let i = 0; i < count; i++) heap[at + i] = uniform() - 0.5;
};
const [a, b, c] = [reserve('a', 4096), reserve('b', 4096), reserve('c', 4096)];

/** Plain loops in the kernel's own order of rounding. */
const plainly = (
  m: number,
  n: number,
  k: number,
  aAt: (i: number, q: number) => number,
  start: (i: number, j: number) => number,
): number[] =>
  Array.from({ length: m * n }, (_, index) => {
    const [i, j] = [Math.floor(index / n), index % n];
    let sum = start(i, j);
    for (let q = 0; q < k; q++) sum = Math.fround(sum + Math.fround(aAt(i, q) * (heap[b + q * n + j] as number)));
    return sum;
  });

describe('the matrix kernel is plain loops to the bit', () => {
  it.each([
    [1, 4, 1],
    [1, 20, 7],
    [3, 8, 5],
    [4, 12, 16],
    [9, 36, 33],
    [64, 64, 48],
  ])('%i × %i, summed over %i', (m, n, k) => {
    fill(a, m * k);
    fill(b, k * n);
    matmul({ at: a, row: k }, { at: b, row: n }, { at: c, row: n }, m, n, k);
    const straight = plainly(
      m,
      n,
      k,
      (i, q) => heap[a + i * k + q] as number,
      () => 0,
    );
    expect([...heap.subarray(c, c + m * n)]).toEqual(straight);

    matmul({ at: a, row: 1, column: m }, { at: b, row: n }, { at: c, row: n }, m, n, k, true);
    const transposedOnTop = plainly(
      m,
      n,
      k,
      (i, q) => heap[a + q * m + i] as number,
      (i, j) => straight[i * n + j] as number,
    );
    expect([...heap.subarray(c, c + m * n)]).toEqual(transposedOnTop);
  });

  it('writes nothing outside the block it was given', () => {
    fill(a, 15);
    fill(b, 40);
    heap.fill(123, c, c + 100);
    matmul({ at: a, row: 5 }, { at: b, row: 8 }, { at: c, row: 12 }, 3, 8, 5);
    const outside = [8, 9, 10, 11, 20, 23, 32, 35, 36].map((i) => heap[c + i]);
    expect(outside).toEqual(outside.map(() => 123));
  });
});

describe('exponentials', () => {
  it('are those of Math.exp to 5e-7 of themselves over the whole range', () => {
    for (let x = -80; x <= 80; x += 0.37) {
      heap[a] = x;
      exponentials(a, c, 1, 0.5, -1);
      expect((heap[c] as number) / Math.exp(Math.fround(Math.fround((heap[a] as number) * 0.5) - 1)) - 1).toBeCloseTo(0, 6);
    }
  });

  it('of very negative numbers are as good as 0', () => {
    heap[a] = -1e30;
    exponentials(a, c, 1, 1, 0);
    expect(heap[c]).toBeLessThan(1e-37);
  });
});
