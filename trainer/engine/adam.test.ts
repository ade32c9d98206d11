import { describe, expect, it } from 'vitest';
import { adamStep, noMoments } from './adam.ts';

const settings = { learningRate: 0.1, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 };
const updated = (changes: Partial<typeof settings>, gradients: readonly number[][], start: readonly number[]) => {
  const parameters = Float32Array.from(start);
  const moments = noMoments(start.length);
  const norms = gradients.map((gradient) => adamStep(parameters, Float32Array.from(gradient), moments, { ...settings, ...changes }));
  return { parameters: [...parameters], norms, moments };
};
const close = (values: readonly number[], wanted: readonly number[]) =>
  expect(Math.max(...values.map((value, i) => Math.abs(value - (wanted[i] as number))))).toBeLessThan(1e-5);

describe('adam', () => {
  it('moves by the learning rate against the sign at first', () => close(updated({}, [[3, -0.001]], [1, 1]).parameters, [0.9, 1.1]));

  it('corrects the bias of both moments', () => {
    // After gradients 1 and 3: mean (0.9·0.1 + 0.1·3)/0.19, square (0.95·0.05 + 0.05·9)/0.0975.
    const second = 0.39 / 0.19 / Math.sqrt(0.4975 / 0.0975);
    close(updated({}, [[1], [3]], [1]).parameters, [1 - 0.1 - 0.1 * second]);
  });

  it('decays weights apart from the gradient', () => close(updated({ weightDecay: 0.5 }, [[0]], [2]).parameters, [2 - 0.1 * 0.5 * 2]));

  it('clips to the norm and reports the norm before', () => {
    const { norms, moments } = updated({ gradClipNorm: 1 }, [[3, 4]], [0, 0]);
    expect(norms).toEqual([5]);
    close([...moments.first], [0.06, 0.08]);
  });

  it('refuses a gradient that is not finite and changes nothing', () => {
    const parameters = Float32Array.of(1);
    const moments = noMoments(1);
    expect(() => adamStep(parameters, Float32Array.of(Number.NaN), moments, settings)).toThrow(/not finite/);
    expect([parameters[0], moments.step]).toEqual([1, 0]);
  });

  it('refuses an update that is not finite and changes nothing', () => {
    const parameters = Float32Array.of(1, 2);
    const moments = noMoments(2);
    expect(() => adamStep(parameters, Float32Array.of(1, 0), moments, { ...settings, learningRate: 1e300 })).toThrow(
      /learning rate 1e\+300/,
    );
    expect([[...parameters], [...moments.first], [...moments.second], moments.step]).toEqual([[1, 2], [0, 0], [0, 0], 0]);
  });

  it('names a setting it cannot use', () => {
    expect(() => updated({ beta2: 1 }, [[1]], [1])).toThrow(/beta2/);
    expect(() => updated({ learningRate: Number.NaN }, [[1]], [1])).toThrow(/learningRate/);
  });
});
