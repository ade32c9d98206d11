import type { AdamSettings } from './types.ts';

/** Moments of one parameter vector; `step` counts the updates made. */
export type Moments = { readonly first: Float32Array; readonly second: Float32Array; step: number };

export const noMoments = (length: number): Moments => ({ first: new Float32Array(length), second: new Float32Array(length), step: 0 });

const checkSettings = (settings: AdamSettings): void => {
  for (const [field, value] of Object.entries(settings)) {
    if (!Number.isFinite(value) || value < 0) throw new RangeError(`adam: ${field} is ${value}, it must be a number from 0`);
  }
  for (const field of ['beta1', 'beta2'] as const) if (settings[field] >= 1) throw new RangeError(`adam: ${field} must be below 1`);
};

/**
 * One update in place (Kingma & Ba; decoupled weight decay as in AdamW). Gradients longer than `gradClipNorm` are scaled down to it first.
 * Returns the norm before clipping. A gradient or an update that is not finite is refused and changes nothing.
 */
export const adamStep = (parameters: Float32Array, gradients: Float32Array, moments: Moments, settings: AdamSettings): number => {
  checkSettings(settings);
  const { learningRate, beta1, beta2, eps, weightDecay, gradClipNorm } = settings;
  let squares = 0;
  for (let i = 0; i < gradients.length; i++) squares += (gradients[i] as number) ** 2;
  const norm = Math.sqrt(squares);
  if (!Number.isFinite(norm)) throw new Error('optim_step: the gradient is not finite; the weights were left as they are');
  const clip = gradClipNorm > 0 && norm > gradClipNorm ? gradClipNorm / norm : 1;
  const before = { parameters: parameters.slice(), first: moments.first.slice(), second: moments.second.slice() };
  moments.step += 1;
  const correction1 = 1 - beta1 ** moments.step;
  const correction2 = 1 - beta2 ** moments.step;
  const { first, second } = moments;
  for (let i = 0; i < parameters.length; i++) {
    const gradient = (gradients[i] as number) * clip;
    const mean = beta1 * (first[i] as number) + (1 - beta1) * gradient;
    const square = beta2 * (second[i] as number) + (1 - beta2) * gradient * gradient;
    first[i] = mean;
    second[i] = square;
    const value = parameters[i] as number;
    const direction = mean / correction1 / (Math.sqrt(square / correction2) + eps);
    parameters[i] = value - learningRate * (direction + weightDecay * value);
  }
  if (!parameters.every(Number.isFinite)) {
    parameters.set(before.parameters);
    first.set(before.first);
    second.set(before.second);
    moments.step -= 1;
    throw new Error(`optim_step: with learning rate ${learningRate} the weights would not be finite; they were left as they are`);
  }
  return norm;
};
