import { describe, expect, it } from 'vitest';
import { LoraModel } from './lora.ts';
import { uniformStream } from './random.ts';
import { readSafetensors } from './safetensors.ts';
import { TINY_SHAPE } from './shape.ts';
import { initialWeights } from './weights.ts';

const base = initialWeights(TINY_SHAPE, 1);
const settings = { rank: 4, seed: 6, trainAttn: true, trainMlp: true };
const adam = { learningRate: 5e-3, beta1: 0.9, beta2: 0.95, eps: 1e-12, weightDecay: 0, gradClipNorm: 0 };
const uniform = uniformStream(3);
const ids = () => Int32Array.from({ length: 12 }, () => Math.floor(uniform() * 128));
const batch = {
  loss: 'cross_entropy',
  datums: [0, 1].map(() => ({ tokens: ids(), targets: ids(), weights: new Float32Array(12).fill(1) })),
} as const;
const train = (model: LoraModel, steps: number) => {
  for (let i = 0; i < steps; i++) {
    model.forwardBackward(batch);
    model.optimStep(adam);
  }
  return model;
};

describe('a LoRA model', () => {
  it('starts as its base', () => expect(LoraModel.create(base, settings).merged().values).toEqual(base.values));

  it('learns, and a snapshot taken before stays as it was', () => {
    const model = LoraModel.create(base, settings);
    const before = model.merged();
    const loss = model.forward(batch).metrics['loss:sum'];
    train(model, 10);
    expect(model.forward(batch).metrics['loss:sum']).toBeLessThan(loss * 0.8);
    expect(before.values).toEqual(base.values);
  });

  it('is the same after the same calls, and another with another seed', () => {
    const bytes = (seed: number) => train(LoraModel.create(base, { ...settings, seed }), 2).weightsBytes();
    expect(bytes(6)).toEqual(bytes(6));
    expect(bytes(6)).not.toEqual(bytes(7));
  });

  it('goes on from its bytes exactly as if it had never stopped; without the optimizer bytes it does not', () => {
    const straight = train(LoraModel.create(base, settings), 4);
    const half = train(LoraModel.create(base, settings), 2);
    const resumed = train(LoraModel.restore(base, half.weightsBytes(), half.optimizerBytes()), 2);
    expect(resumed.weightsBytes()).toEqual(straight.weightsBytes());
    expect(resumed.optimizerBytes()).toEqual(straight.optimizerBytes());
    expect(train(LoraModel.restore(base, half.weightsBytes(), null), 2).weightsBytes()).not.toEqual(straight.weightsBytes());
  });

  it('uses a gradient once', () => {
    const model = LoraModel.create(base, settings);
    model.forwardBackward(batch);
    expect(model.optimStep(adam).gradNorm).toBeGreaterThan(0);
    expect(model.optimStep(adam)).toEqual({ gradNorm: 0, step: 2 });
  });

  it('leaves alone what is switched off', () => {
    const model = train(LoraModel.create(base, { ...settings, trainMlp: false }), 1);
    const names = [...readSafetensors(model.weightsBytes(), 'adapter').tensors.keys()];
    expect(names).toContain('base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight');
    expect(names.filter((name) => name.includes('mlp'))).toEqual([]);
    expect(() => LoraModel.create(base, { ...settings, trainMlp: false, trainAttn: false })).toThrow(/nothing to train/);
  });

  it('refuses bytes of another adapter', () => {
    const model = LoraModel.create(base, settings);
    const wider = LoraModel.create(base, { ...settings, rank: 8 });
    expect(() => LoraModel.restore(base, model.weightsBytes(), wider.optimizerBytes())).toThrow(/another adapter/);
    expect(() => LoraModel.restore(base, model.optimizerBytes(), null)).toThrow(/adapter weights: metadata field rank is missing/);
  });
});
