import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadWeights } from '../../trainer/engine/index.ts';
import { FINGERPRINT_STEPS, pretrain, RECIPES } from './pretrain.ts';

const STEPS_AGAIN = 5;

const committed = (name: keyof typeof RECIPES) => {
  const file = new URL(`../../trainer/weights/tiny-${name}.safetensors`, import.meta.url);
  return loadWeights(readFileSync(file), `tiny-${name}.safetensors`);
};

describe.each(['teacher', 'student'] as const)('the committed weights of the %s', (name) => {
  it('come from this script, this content and this seed: training the first steps again gives the losses in the file', () => {
    const { metadata } = committed(name);
    const wanted: unknown = JSON.parse(metadata.first_losses ?? '[]');
    expect(wanted).toHaveLength(FINGERPRINT_STEPS);
    const { losses } = pretrain(RECIPES[name], STEPS_AGAIN);
    expect(losses).toHaveLength(STEPS_AGAIN);
    // Another version of the runtime may round an exponential differently; another batch or seed is off by far more.
    losses.forEach((loss, step) => {
      expect(Math.abs(loss - ((wanted as number[])[step] as number))).toBeLessThan(1e-4);
    });
  }, 60_000);

  it('are named after the model they serve', () => expect(committed(name).metadata.model).toBe(RECIPES[name].model));
});
