import { describe, expect, it } from 'vitest';
import type { TrialId } from '../ids.ts';
import type { Datum } from './span.ts';
import { buildTopkReplicas, renormalize, type TopkRow, topkToWire } from './topk.ts';

type Candidate = readonly [token: number, logprob: number];

const datum = (tokens: number[], mask: number[], fragment = 0): Datum => ({
  trial: 'run-a-t0' as TrialId,
  fragment,
  tokens: Int32Array.from(tokens),
  mask: Uint8Array.from(mask),
  logprobs: Float64Array.from(mask, (isLoss) => -isLoss),
});
/** A row as the teacher gives it; null where it gave no candidates. */
const row = (...positions: (readonly Candidate[] | null)[]): TopkRow => {
  const width = Math.max(0, ...positions.map((candidates) => candidates?.length ?? 0));
  const padded = positions.flatMap((candidates) => Array.from({ length: width }, (_, i) => candidates?.[i] ?? ([0, 0] as const)));
  return {
    width,
    counts: Int32Array.from(positions, (candidates) => candidates?.length ?? -1),
    tokens: Int32Array.from(padded, ([token]) => token),
    logprobs: Float64Array.from(padded, ([, logprob]) => logprob),
  };
};

describe('buildTopkReplicas', () => {
  it('a loss token at position 0 drops its datum, scored or not, and is counted; the others stay', () => {
    const bad = datum([1, 2], [1, 1]);
    const good = datum([7, 8], [0, 1], 1);
    for (const first of [null, [[1, -0.1]]] as const) {
      const { replicas, stats } = buildTopkReplicas([bad, good], [row(first, [[2, -0.1]]), row(null, [[9, -0.5]])], 1);
      expect(replicas.map(({ source, targetTokens }) => [source, [...targetTokens]])).toEqual([[1, [7, 9]]]);
      expect(stats).toEqual({ sourceDatums: 1, datums: 1, mismatchDrops: 1, lossTokens: 1, contextTokens: 1 });
    }
  });

  it('candidates at context positions are neither checked nor used: too many, not finite, none', () => {
    const junk: Candidate[] = [
      [5, Number.NaN],
      [6, Number.POSITIVE_INFINITY],
      [7, 3],
    ];
    const clean = buildTopkReplicas([datum([10, 11, 12], [0, 0, 1])], [row(null, null, [[4, -0.5]])], 1);
    for (const context of [junk, [], null]) {
      const found = buildTopkReplicas([datum([10, 11, 12], [0, 0, 1])], [row(context, context, [[4, -0.5]])], 1);
      expect(found).toEqual(clean);
    }
    expect([...(clean.replicas[0]?.targetWeights ?? [])]).toEqual([0, 0, 1]);
  });

  it.each([
    ['no candidates', null],
    ['an empty list', []],
    ['one that is not finite', [[4, -0.5] as const, [5, Number.NEGATIVE_INFINITY] as const]],
  ])('%s at a loss position drops the datum', (_, candidates) => {
    const { replicas, stats } = buildTopkReplicas([datum([10, 11], [0, 1])], [row(null, candidates)], 2);
    expect(replicas).toEqual([]);
    expect(stats).toMatchObject({ sourceDatums: 0, mismatchDrops: 1, lossTokens: 0, contextTokens: 0 });
  });

  it('two datums of the same tokens are two sources', () => {
    const twins = [datum([10, 11], [0, 1]), datum([10, 11], [0, 1], 1)];
    const { replicas } = buildTopkReplicas(twins, [row(null, [[4, -0.5]]), row(null, [[4, -0.5]])], 2);
    expect(replicas.map(({ source }) => source)).toEqual([0, 0, 1, 1]);
  });

  it.each([0, 1.5, Number.NaN])('refuses k = %s', (k) => {
    expect(() => buildTopkReplicas([], [], k)).toThrow(/k must be a whole number/);
  });
});

it('the wire lists are shifted by one, weights with their targets', () => {
  const { replicas } = buildTopkReplicas(
    [datum([10, 11, 12], [0, 1, 1])],
    [
      row(
        null,
        [[4, -0.5]],
        [
          [6, 0],
          [5, 0],
        ],
      ),
    ],
    2,
  );
  expect(topkToWire(replicas)).toEqual([
    { modelInput: Int32Array.of(10, 11), targetTokens: Int32Array.of(4, 5), weights: Float32Array.of(1, 0.5) },
    { modelInput: Int32Array.of(10, 11), targetTokens: Int32Array.of(11, 6), weights: Float32Array.of(0, 0.5) },
  ]);
});

it('candidates of vanishing probability are still weighed against each other', () => {
  expect([...renormalize([-800, -801])]).toEqual([1 / (1 + Math.exp(-1)), Math.exp(-1) / (1 + Math.exp(-1))]);
});
