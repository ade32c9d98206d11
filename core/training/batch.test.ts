import { describe, expect, it } from 'vitest';
import type { TrialId } from '../ids.ts';
import type { Datum } from '../tokens/span.ts';
import type { TopkRow } from '../tokens/topk.ts';
import { decodeTopkRows, encodeTopkRows } from '../tokens/topk-codec.ts';
import { type BatchOptions, prepareBatch, type ScoredBatch } from './batch.ts';

const trial = 'run-a-t0' as TrialId;
const NONE = Number.NaN;

/** One sequence of a context token and `logprobs.length` sampled ones. */
const datum = (fragment: number, logprobs: readonly number[]): Datum => ({
  trial,
  fragment,
  tokens: Int32Array.from([5, ...logprobs.keys()]),
  mask: Uint8Array.from([0, ...logprobs.map(() => 1)]),
  logprobs: Float64Array.from([0, ...logprobs]),
});
const row = (scores: readonly number[]) => Float64Array.from([NONE, ...scores]);
const candidates = (tokens: readonly (readonly number[])[]): TopkRow => {
  const width = Math.max(1, ...tokens.map((list) => list.length));
  const padded = tokens.flatMap((list) => Array.from({ length: width }, (_, i) => list[i] ?? 0));
  return {
    width,
    counts: Int32Array.from(tokens, (list) => (list.length === 0 ? -1 : list.length)),
    tokens: Int32Array.from(padded),
    logprobs: Float64Array.from(padded, (_, i) => -1 - (i % width)),
  };
};
const options = (train: Partial<BatchOptions['train']> = {}): BatchOptions => ({
  train: { loss: 'importance_sampling', topk: 2, advantage_clip: null, center_advantages: false, num_substeps: 1, ...train },
  runName: 'run-a',
  step: 1,
});
const batch = (gaps: readonly (readonly number[])[]): ScoredBatch => ({
  datums: gaps.map((gap, i) =>
    datum(
      i,
      gap.map(() => -1),
    ),
  ),
  rows: gaps.map((gap) => row(gap.map((difference) => -1 + difference))),
  candidates: null,
});

describe('prepareBatch', () => {
  it.each(['importance_sampling', 'ppo'] as const)('%s sends what was sampled with teacher − student as the advantage', (loss) => {
    const prepared = prepareBatch(batch([[0.5, -0.25]]), options({ loss }));
    expect(prepared.loss).toBe(loss);
    expect(prepared.updates).toEqual([
      [
        {
          modelInput: Int32Array.of(5, 0),
          targetTokens: Int32Array.of(0, 1),
          logprobs: Float32Array.of(-1, -1),
          advantages: Float32Array.of(0.5, -0.25),
        },
      ],
    ]);
    expect(prepared).toMatchObject({ trainTokens: 3, figures: { datums: 1, lossTokens: 2, contextTokens: 1, klTokens: 2 } });
    expect(prepared.figures.reverseKlNatsPerToken).toBeCloseTo(-0.125, 12);
  });

  it('clips, then centres', () => {
    const train = { advantage_clip: 1, center_advantages: true };
    const { updates, figures } = prepareBatch(batch([[3, 0]]), options(train));
    expect(updates[0]?.[0]).toMatchObject({ advantages: Float32Array.of(0.5, -0.5) });
    expect(figures).toMatchObject({ clippedTokens: 1, advantageMean: 0, advantageStd: 0.5 });
  });

  it('makes as many updates as substeps, or as there are sequences', () => {
    const five = batch([[1], [2], [3], [4], [5]]);
    expect(prepareBatch(five, options({ num_substeps: 4 })).updates.map((update) => update.length)).toEqual([2, 1, 1, 1]);
    expect(prepareBatch(five, options({ num_substeps: 9 })).updates).toHaveLength(5);
  });

  it.each([
    ['no datum', batch([])],
    ['advantages that are all zero', batch([[0, 0], [0]])],
  ])('a batch with %s has no update and no bill', (_, empty) => {
    expect(prepareBatch(empty, options({ num_substeps: 2 }))).toMatchObject({ updates: [], trainTokens: 0 });
  });

  it('topk_ce sends one replica a rank, keeps those of a sequence in one update, and bills each', () => {
    const two: ScoredBatch = {
      ...batch([[1], [1]]),
      candidates: [candidates([[], [7, 8]]), candidates([[], [9]])],
    };
    const { loss, updates, figures, trainTokens } = prepareBatch(two, options({ loss: 'topk_ce', num_substeps: 2 }));
    expect(loss).toBe('cross_entropy');
    expect(updates.map((update) => update.length)).toEqual([2, 2]);
    expect(updates.flat().map(({ targetTokens }) => targetTokens[0])).toEqual(expect.arrayContaining([7, 8, 9]));
    expect(figures).toMatchObject({ datums: 4, lossTokens: 2, advantageMean: null, clippedTokens: 0, klTokens: 2 });
    expect(trainTokens).toBe(8);
  });
});

describe('candidates in the blob store', () => {
  it('come back as they were at loss positions, and are none elsewhere', () => {
    const datums = [datum(0, [-1, -2]), datum(1, [-3])];
    const rows = [candidates([[1, 2], [3, 4], [5]]), candidates([[], [6, 7]])];
    const [first, second] = decodeTopkRows(encodeTopkRows(trial, datums, rows), datums);
    expect(first?.counts).toEqual(Int32Array.of(-1, 2, 1));
    expect(first?.tokens.subarray(2, 5)).toEqual(Int32Array.of(3, 4, 5));
    expect(first?.logprobs.subarray(2, 5)).toEqual(Float64Array.of(-1, -2, -1));
    expect(second?.tokens.subarray(2)).toEqual(Int32Array.of(6, 7));
  });

  it('of other datums are refused', () => {
    const bytes = encodeTopkRows(trial, [datum(0, [-1])], [candidates([[], [1]])]);
    expect(() => decodeTopkRows(bytes, [datum(0, [-1, -2])])).toThrow(/do not fit/);
    expect(() => encodeTopkRows(trial, [datum(0, [-1])], [candidates([[1]])])).toThrow(/candidates at 1 positions for 2 tokens/);
  });
});
