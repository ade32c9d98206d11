import { describe, expect, test } from 'vitest';
import { estimatedBytes, type TrainingDatum } from '../wire/index.ts';
import { type ChunkLimits, chunkDatums } from './chunks.ts';
import { combineOutputs } from './combine.ts';

function datum(length: number): TrainingDatum {
  const tokens = new Int32Array(length);
  return { modelInput: tokens, lossFnInputs: { target_tokens: tokens, weights: new Float32Array(length) } };
}

describe('chunking', () => {
  const sizes = (lengths: number[], limits: ChunkLimits) => chunkDatums(lengths.map(datum), limits).map((chunk) => chunk.length);

  test('a chunk closes at its number of datums and before it passes its bytes; exactly the limit fits', () => {
    expect(estimatedBytes(datum(3))).toBe(48);
    expect(sizes([3, 3, 3, 3, 3], { maxDatums: 2, maxBytes: 1000 })).toEqual([2, 2, 1]);
    expect(sizes([3, 3, 3, 3, 3], { maxDatums: 9, maxBytes: 96 })).toEqual([2, 2, 1]);
    expect(sizes([3, 3, 3, 3, 3], { maxDatums: 9, maxBytes: 95 })).toEqual([1, 1, 1, 1, 1]);
  });

  test('a datum larger than the limit goes alone', () => {
    expect(sizes([3, 50, 3, 3], { maxDatums: 9, maxBytes: 100 })).toEqual([1, 1, 2]);
  });

  test('an empty batch has no chunks', () => {
    expect(chunkDatums([], { maxDatums: 1, maxBytes: 1 })).toEqual([]);
  });
});

describe('joining metrics', () => {
  const output = (metrics: Record<string, number>, datums: number) => ({
    lossFnOutputType: 't',
    lossFnOutputs: Array.from({ length: datums }, () => ({})),
    metrics,
  });

  test('every reduction', () => {
    const joined = combineOutputs([
      output({ 'a:min': 2, 'b:slack': 1, 'c:hash2': -1, 'd:unique': 3, 'e:odd': 1, 'f:sum': 1 }, 1),
      output({ 'a:min': -1, 'b:slack': 4, 'c:hash2': 2 ** 63, 'd:unique': 5, 'e:odd': 1 }, 3),
    ]);
    expect(joined.metrics).toEqual({ 'a:min': -1, 'b:slack': 0.75, 'c:hash2': Number(2n ** 63n - 1n), 'd:unique': 3, 'd:unique_2': 5 });
  });

  test('a name without a reduction is refused by name', () => {
    expect(() => combineOutputs([output({ loss: 1 }, 1)])).toThrow(/"loss"/);
  });
});
