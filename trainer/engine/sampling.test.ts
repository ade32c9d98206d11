import { describe, expect, it } from 'vitest';
import { heap, reserve } from './heap.ts';
import { uniformStream } from './random.ts';
import { type Drawing, drawToken } from './sampling.ts';

const VOCAB = 24;
const at = reserve('logits of a test', VOCAB);
const random = uniformStream(9);
const setLogits = (logits: readonly number[]): void => heap.set(Float32Array.from(logits), at);
const randomLogits = (): number[] => Array.from({ length: VOCAB }, () => 6 * random() - 3);

const tokens = (drawing: Drawing, count: number, seed = 1): number[] => {
  const uniform = uniformStream(seed);
  return Array.from({ length: count }, () => drawToken(at, VOCAB, drawing, uniform).token);
};
const shares = (logits: readonly number[]): number[] => {
  const weights = logits.map((logit) => Math.exp(Math.fround(logit)));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
};

describe('drawing a token', () => {
  it('is bit for bit the plain draw when top_k takes in everything and top_p is 1', () => {
    for (let round = 0; round < 200; round++) {
      setLogits(randomLogits());
      const temperature = 0.2 + 2 * random();
      const plain = drawToken(at, VOCAB, { temperature }, uniformStream(round));
      expect(drawToken(at, VOCAB, { temperature, topK: VOCAB, topP: 1 }, uniformStream(round))).toEqual(plain);
      expect(drawToken(at, VOCAB, { temperature, topK: 4096 }, uniformStream(round))).toEqual(plain);
    }
  });

  it('with top_k takes only the likeliest, in the proportions they have', () => {
    const logits = randomLogits();
    setLogits(logits);
    const best = shares(logits)
      .map((share, id) => ({ share, id }))
      .sort((a, b) => b.share - a.share)
      .slice(0, 3);
    const mass = best.reduce((sum, { share }) => sum + share, 0);
    const drawn = tokens({ temperature: 1, topK: 3 }, 20_000);
    expect(new Set(drawn)).toEqual(new Set(best.map(({ id }) => id)));
    for (const { id, share } of best) expect(drawn.filter((token) => token === id).length / 20_000).toBeCloseTo(share / mass, 1);
  });

  it('with top_p takes the fewest that reach it, and always one', () => {
    setLogits([0.5, 0.3, 0.15, ...new Array(VOCAB - 3).fill(0.05 / (VOCAB - 3))].map(Math.log));
    expect(new Set(tokens({ temperature: 1, topP: 0.45 }, 500))).toEqual(new Set([0]));
    expect(new Set(tokens({ temperature: 1, topP: 0.75 }, 500))).toEqual(new Set([0, 1]));
    expect(new Set(tokens({ temperature: 1, topP: 0.94 }, 500))).toEqual(new Set([0, 1, 2]));
    expect(new Set(tokens({ temperature: 1, topP: 1e-9 }, 50))).toEqual(new Set([0]));
    // Of the two that top_k leaves, the first has 0.5 / 0.8.
    expect(new Set(tokens({ temperature: 1, topK: 2, topP: 0.6 }, 500))).toEqual(new Set([0]));
  });

  it('looks at the distribution of the temperature, and gives the log-probability under all of it', () => {
    const logits = [0.5, 0.3, 0.15, ...new Array(VOCAB - 3).fill(0.05 / (VOCAB - 3))].map(Math.log);
    setLogits(logits);
    expect(new Set(tokens({ temperature: 0.2, topP: 0.75 }, 300))).toEqual(new Set([0]));
    const { token, logprob } = drawToken(at, VOCAB, { temperature: 1, topK: 1 }, uniformStream(3));
    expect([token, Math.exp(logprob)]).toEqual([0, expect.closeTo(0.5, 5)]);
  });
});
