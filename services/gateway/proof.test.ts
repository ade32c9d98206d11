import { describe, expect, it } from 'vitest';
import { proveTokens } from './proof.ts';

const sampled = Int32Array.of(99, 112, 10);
const issued = Float64Array.of(-0.5, -1, -2);
const proof = (recomputed: number[], over: Partial<Parameters<typeof proveTokens>[0]> = {}) =>
  proveTokens({ sampled, issued, recomputed: Float64Array.from(recomputed), ...over });

describe('proveTokens', () => {
  it.each([
    ['equal', [-0.5, -1, -2], true, 0, 0],
    ['at both limits', [-0.5, -1, -2.75], true, 0.25, 0.75],
    ['mean over the limit', [-0.8, -1.3, -2.3], false, 0.3, 0.3],
    ['one token over the limit, in either direction', [-0.5, -1, -0.75], false, 1.25 / 3, 1.25],
  ])('%s', (_, recomputed, ok, mean, max) => {
    const result = proof(recomputed);
    expect(result.ok).toBe(ok);
    expect(result.reason === null).toBe(ok);
    expect(result.meanAbsDiffNats).toBeCloseTo(mean, 12);
    expect(result.maxAbsDiffNats).toBeCloseTo(max, 12);
  });

  it('says when one token alone is too far, though the mean is small', () => {
    const n = 8;
    const one = new Float64Array(n).fill(-1);
    const far = Float64Array.from(one, (value, index) => (index === 3 ? value - 1.5 : value));
    const result = proveTokens({ sampled: new Int32Array(n), issued: one, recomputed: far });
    expect(result).toMatchObject({
      ok: false,
      meanAbsDiffNats: 1.5 / n,
      maxAbsDiffNats: 1.5,
      reason: 'largest difference 1.500 nats is above 1',
    });
  });

  it.each([
    ['nothing sampled', { sampled: new Int32Array(0) }, /no sampled tokens/],
    ['a recomputed value missing', { recomputed: Float64Array.of(-0.5, -1) }, /3 sampled tokens have 3 issued and 2 recomputed/],
    ['an issued value missing', { issued: Float32Array.of(-0.5, -1) }, /have 2 issued and 3/],
    ['NaN issued', { issued: Float64Array.of(-0.5, Number.NaN, -2) }, /token 1 is not finite/],
    ['infinite recomputed', { recomputed: Float64Array.of(-0.5, -1, Number.NEGATIVE_INFINITY) }, /token 2 is not finite/],
    [
      'both infinite',
      { issued: Float64Array.of(-Infinity, -1, -2), recomputed: Float64Array.of(-Infinity, -1, -2) },
      /token 0 is not finite/,
    ],
  ])('cannot be shown with %s', (_, over, reason) => {
    const result = proof([-0.5, -1, -2], over);
    expect(result).toMatchObject({ ok: false, meanAbsDiffNats: Number.NaN, maxAbsDiffNats: Number.NaN });
    expect(result.reason).toMatch(reason);
  });
});
