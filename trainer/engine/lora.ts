import { adamStep, type Moments, noMoments } from './adam.ts';
import { type Adapter, adapterTable, initialAdapter, mergeAdapter, projectGradient, tensorPlaces } from './adapter.ts';
import { readSafetensors, type Tensor, writeSafetensors } from './safetensors.ts';
import { lossPass } from './training-pass.ts';
import type { AdamSettings, DenseWeights, LoraSettings, LossBatch, LossResult, StepMetrics } from './types.ts';

/**
 * A base model with a trainable low-rank adapter (Hu et al. 2021): W + 2·B·A on the seven linears of every layer; alpha is 2·rank.
 *
 * Forward and backward run on merged dense weights, and the dense gradient is projected on A and B: exactly the LoRA gradients
 * (dA = 2·Bᵀ·dW, dB = 2·dW·Aᵀ), at no more cost than two thin products a linear while the model is this small.
 */
export class LoraModel {
  readonly base: DenseWeights;
  readonly settings: LoraSettings;
  readonly #adapters: readonly Adapter[];
  readonly #values: Float32Array;
  readonly #moments: Moments;
  readonly #denseGradient: Float32Array;
  #merged: DenseWeights | null = null;

  private constructor(base: DenseWeights, settings: LoraSettings, values: Float32Array | null, moments: Moments | null) {
    const { adapters, total } = adapterTable(base.shape, settings);
    if (total === 0) throw new RangeError('lora: nothing to train; switch on trainAttn or trainMlp');
    this.base = base;
    this.settings = settings;
    this.#adapters = adapters;
    this.#values = values ?? initialAdapter(adapters, settings, total);
    this.#moments = moments ?? noMoments(total);
    this.#denseGradient = new Float32Array(base.values.length);
  }

  /** A new adapter: A is uniform in ±1/√in from the seed, B is 0, so the model starts as its base. */
  static create(base: DenseWeights, settings: LoraSettings): LoraModel {
    if (!Number.isInteger(settings.rank) || settings.rank < 1)
      throw new RangeError(`lora: rank is ${settings.rank}, it must be a whole number from 1`);
    return new LoraModel(base, settings, null, null);
  }

  /** The model that wrote these bytes; without optimizer bytes the moments start at 0. */
  static restore(base: DenseWeights, weightsBytes: Uint8Array, optimizerBytes: Uint8Array | null): LoraModel {
    const file = readSafetensors(weightsBytes, 'adapter weights');
    const settings = settingsFrom(file.metadata);
    const { adapters, total } = adapterTable(base.shape, settings);
    const values = new Float32Array(total);
    for (const { name, at, dims } of tensorPlaces(adapters, settings.rank)) {
      const tensor = file.tensors.get(name);
      if (tensor?.dims.join() !== dims.join()) throw new Error(`adapter weights: tensor ${name} must have shape [${dims.join(', ')}]`);
      values.set(tensor.values, at);
    }
    return new LoraModel(base, settings, values, optimizerBytes && momentsFrom(optimizerBytes, total));
  }

  /** Adds the batch's gradient to the one waiting for `optimStep`. */
  forwardBackward(batch: LossBatch): LossResult {
    return lossPass(this.merged(), batch, this.#denseGradient, 'linears');
  }

  forward(batch: LossBatch): LossResult {
    return lossPass(this.merged(), batch, null, 'linears');
  }

  /** One Adam update with the gradient gathered since the last one. `gradNorm` is the adapter's, before clipping. */
  optimStep(adam: AdamSettings): StepMetrics {
    const gradient = projectGradient(this.#denseGradient, this.#adapters, this.settings.rank, this.#values);
    const gradNorm = adamStep(this.#values, gradient, this.#moments, adam);
    this.#denseGradient.fill(0);
    this.#merged = null;
    return { gradNorm, step: this.#moments.step };
  }

  /** The model as it is now; later updates do not change it. */
  merged(): DenseWeights {
    this.#merged ??= {
      shape: this.base.shape,
      values: mergeAdapter(this.base.values, this.#adapters, this.settings.rank, this.#values),
      metadata: {},
    };
    return this.#merged;
  }

  /** The adapter as safetensors with the tensor names of PEFT. */
  weightsBytes(): Uint8Array {
    const { rank, seed, trainAttn, trainMlp } = this.settings;
    const tensors = new Map<string, Tensor>();
    for (const { name, at, dims } of tensorPlaces(this.#adapters, rank)) {
      tensors.set(name, { dims, values: this.#values.subarray(at, at + dims[0] * dims[1]) });
    }
    const metadata = {
      rank: String(rank),
      lora_alpha: String(2 * rank),
      seed: String(seed),
      train_attn: String(trainAttn),
      train_mlp: String(trainMlp),
    };
    return writeSafetensors({ tensors, metadata });
  }

  /** Adam's moments as safetensors. A gradient that waits for `optimStep` is not part of it. */
  optimizerBytes(): Uint8Array {
    const { first, second, step } = this.#moments;
    const tensors = new Map([
      ['exp_avg', { dims: [first.length], values: first }],
      ['exp_avg_sq', { dims: [second.length], values: second }],
    ]);
    return writeSafetensors({ tensors, metadata: { step: String(step) } });
  }
}

const settingsFrom = (metadata: Readonly<Record<string, string>>): LoraSettings => {
  const number = (field: string): number => {
    const value = Number(metadata[field]);
    if (!Number.isInteger(value))
      throw new Error(`adapter weights: metadata field ${field} is ${metadata[field] ?? 'missing'}, it must be a whole number`);
    return value;
  };
  return { rank: number('rank'), seed: number('seed'), trainAttn: metadata.train_attn === 'true', trainMlp: metadata.train_mlp === 'true' };
};

const momentsFrom = (bytes: Uint8Array, total: number): Moments => {
  const { tensors, metadata } = readSafetensors(bytes, 'optimizer state');
  const [first, second] = ['exp_avg', 'exp_avg_sq'].map((name) => tensors.get(name)?.values);
  const step = Number(metadata.step);
  if (first?.length !== total || second?.length !== total || !Number.isInteger(step)) {
    throw new Error(
      `optimizer state: exp_avg and exp_avg_sq must have ${total} values and step must be a number; is it of another adapter?`,
    );
  }
  return { first, second, step };
};
