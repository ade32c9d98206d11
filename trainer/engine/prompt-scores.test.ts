import { describe, expect, it } from 'vitest';
import { Decoder } from './decoder.ts';
import { naiveDistributions } from './naive-model.ts';
import { forgetScoresBefore } from './prompt-scores.ts';
import { uniformStream } from './random.ts';
import { TINY_SHAPE } from './shape.ts';
import type { DecodeResult, DenseWeights, ModelShape, TopkLogprobs } from './types.ts';
import { initialWeights } from './weights.ts';

const SMALL: ModelShape = { vocab: 24, width: 16, layers: 2, heads: 2, hidden: 20, context: 24 };

/** Untrained, with the embedding changed token by token: it is the head, too. */
const embedded = (shape: ModelShape, change: (value: number, token: number, values: Float32Array, i: number) => number): DenseWeights => {
  const weights = initialWeights(shape, 1);
  const inEmbedding = shape.vocab * shape.width;
  const values = weights.values.map((value, i, all) => (i < inEmbedding ? change(value, Math.floor(i / shape.width), all, i) : value));
  return { ...weights, values };
};
/** An embedding large enough for distributions that are far from flat. */
const sharp = (shape: ModelShape): DenseWeights => embedded(shape, (value) => 2.5 * value);

type Wanted = { readonly prompt: Int32Array; readonly k: number; readonly promptLogprobs?: boolean };

const scoreAll = (weights: DenseWeights, wanted: readonly Wanted[]): DecodeResult[] => {
  const decoder = new Decoder({ cachedSequences: wanted.length, shape: weights.shape });
  const order = wanted.map(({ prompt, k, promptLogprobs = true }) =>
    decoder.submit({ weights, prompt, maxTokens: 1, temperature: 1, stopTokens: [], seed: 1, promptLogprobs, topkPromptLogprobs: k }),
  );
  const results = new Map<number, DecodeResult>();
  while (decoder.isBusy) for (const { id, result } of decoder.step()) results.set(id, result);
  return order.map((id) => results.get(id) as DecodeResult);
};
const score = (weights: DenseWeights, prompt: Int32Array, k: number): DecodeResult => scoreAll(weights, [{ prompt, k }])[0] as DecodeResult;
const tableOf = ({ topkPromptLogprobs }: DecodeResult): TopkLogprobs => {
  if (topkPromptLogprobs === null) throw new Error('there is no table');
  return topkPromptLogprobs;
};
const rowsOf = (table: TopkLogprobs) =>
  Array.from({ length: table.tokenIds.length / table.k }, (_, i) => ({
    ids: [...table.tokenIds.subarray(i * table.k, (i + 1) * table.k)],
    logprobs: [...table.logprobs.subarray(i * table.k, (i + 1) * table.k)],
  }));

const uniform = uniformStream(4);
const ids = ({ vocab }: ModelShape, length: number) => Int32Array.from({ length }, () => Math.floor(uniform() * vocab));

describe('the likeliest tokens of a prompt', () => {
  it.each([
    ['the best one', TINY_SHAPE, 1],
    ['eight', TINY_SHAPE, 8],
    ['as many as there may be', TINY_SHAPE, 64],
    ['all of a small vocabulary', SMALL, 24],
  ] as const)('are the head of the sorted softmax: %s', (_, shape, k) => {
    const weights = sharp(shape);
    const prompt = ids(shape, 20);
    const rows = rowsOf(tableOf(score(weights, prompt, k)));
    expect(rows).toHaveLength(20);
    naiveDistributions(weights, prompt.subarray(0, -1)).forEach((distribution, i) => {
      const sorted = distribution.toSorted((a, b) => b - a);
      const row = rows[i + 1] as (typeof rows)[number];
      expect(new Set(row.ids).size).toBe(k);
      row.ids.forEach((id, rank) => {
        expect(row.logprobs[rank]).toBeCloseTo(sorted[rank] as number, 5);
        expect(row.logprobs[rank]).toBeCloseTo(distribution[id] as number, 5);
        if (rank > 0) expect(row.logprobs[rank]).toBeLessThanOrEqual(row.logprobs[rank - 1] as number);
      });
    });
  });

  it('have the log-probability that the prompt token has, to the bit, where it is among them', () => {
    const prompt = ids(SMALL, 24);
    const result = scoreAll(sharp(SMALL), [{ prompt: prompt.subarray(0, 23), k: 8 }])[0] as DecodeResult;
    const found = rowsOf(tableOf(result)).flatMap(({ ids: row, logprobs }, i) => {
      const rank = row.indexOf(prompt[i] as number);
      return rank < 0 ? [] : [[logprobs[rank], result.promptLogprobs?.[i]]];
    });
    expect(found.length).toBeGreaterThan(3);
    for (const [candidate, own] of found) expect(candidate).toBe(own);
  });

  it('are none at position 0', () => {
    const [first] = rowsOf(tableOf(score(sharp(SMALL), ids(SMALL, 5), 3)));
    expect(first).toEqual({ ids: [-1, -1, -1], logprobs: [Number.NaN, Number.NaN, Number.NaN] });
    expect(rowsOf(tableOf(score(sharp(SMALL), ids(SMALL, 1), 3)))).toEqual([first]);
  });

  it('stand in the order of their ids where they are equally likely', () => {
    const flat = embedded(TINY_SHAPE, () => 0);
    const rows = rowsOf(tableOf(score(flat, ids(TINY_SHAPE, 3), 64)));
    expect(rows[2]?.ids).toEqual(Array.from({ length: 64 }, (_, id) => id));
    expect(rows[2]?.logprobs[63]).toBeCloseTo(-Math.log(128), 5);
    // Tokens in pairs of twins: 0 and 12, 1 and 13, and so on.
    const half = SMALL.vocab / 2;
    const twins = embedded(SMALL, (value, token, values, i) => 2.5 * (token < half ? value : (values[i - half * SMALL.width] as number)));
    for (const { ids: row } of rowsOf(tableOf(score(twins, ids(SMALL, 12), 24))).slice(1)) {
      const order = row.filter((id) => id < half);
      expect(row).toEqual(order.flatMap((id) => [id, id + half]));
      expect(order).not.toEqual(order.toSorted((a, b) => a - b));
    }
  });

  it('do not depend on what else is scored, and change nothing else', () => {
    const weights = sharp(TINY_SHAPE);
    const wanted = [5, 1, 190, 120, 120, 60].map((length, i) => ({ prompt: ids(TINY_SHAPE, length), k: [8, 3, 0, 64, 1, 8][i] as number }));
    const together = scoreAll(weights, wanted);
    wanted.forEach(({ prompt, k }, i) => {
      expect(together[i]).toEqual(score(weights, prompt, k));
      expect({ ...(together[i] as DecodeResult), topkPromptLogprobs: null }).toEqual(score(weights, prompt, 0));
      expect(scoreAll(weights, [{ prompt, k, promptLogprobs: false }])[0]).toEqual({
        ...(together[i] as DecodeResult),
        promptLogprobs: null,
      });
    });
  });

  it('are as many as the vocabulary has, at most', () => {
    expect(() => score(sharp(SMALL), ids(SMALL, 3), 25)).toThrow(/topk_prompt_logprobs is 25.*0 \(none\) to 24/);
    expect(() => score(sharp(SMALL), ids(SMALL, 3), -1)).toThrow(/topk_prompt_logprobs is -1/);
  });

  it('of weights that are no numbers are none', () => {
    const broken = embedded(SMALL, () => Number.NaN);
    expect(rowsOf(tableOf(score(broken, ids(SMALL, 3), 2)))[2]).toEqual({ ids: [-1, -1], logprobs: [Number.NaN, Number.NaN] });
  });
});

it('scores before a position can be taken back', () => {
  const prompt = ids(SMALL, 6);
  const [whole, end] = [score(sharp(SMALL), prompt, 2), score(sharp(SMALL), prompt, 2)];
  forgetScoresBefore(end, 4);
  expect(rowsOf(tableOf(end)).map(({ ids: row }) => row[1] === -1)).toEqual([true, true, true, true, false, false]);
  expect(rowsOf(tableOf(end)).slice(4)).toEqual(rowsOf(tableOf(whole)).slice(4));
  expect(end.promptLogprobs?.subarray(0, 4).every(Number.isNaN)).toBe(true);
  expect(end.promptLogprobs?.subarray(4)).toEqual(whole.promptLogprobs?.subarray(4));
});
