import { normalStream } from './random.ts';
import { readSafetensors, type Tensor, writeSafetensors } from './safetensors.ts';
import { parameterTable, placesOf, TINY_SHAPE } from './shape.ts';
import type { DenseWeights, ModelShape } from './types.ts';

/** Reads a model of `shape` from safetensors bytes. `source` names the file in errors. */
export const loadWeights = (bytes: Uint8Array, source = 'model weights', shape: ModelShape = TINY_SHAPE): DenseWeights => {
  const { tensors, metadata } = readSafetensors(bytes, source);
  const values = new Float32Array(placesOf(shape).total);
  for (const parameter of parameterTable(shape)) {
    const tensor = tensors.get(parameter.name);
    const wanted = parameter.isNorm ? [parameter.columns] : [parameter.rows, parameter.columns];
    if (!tensor) throw new Error(`${source}: tensor ${parameter.name} is missing; is this a model of another shape?`);
    if (tensor.dims.join() !== wanted.join()) {
      throw new Error(`${source}: tensor ${parameter.name} has shape [${tensor.dims.join(', ')}], wanted [${wanted.join(', ')}]`);
    }
    values.set(tensor.values, parameter.at);
  }
  return { shape, values, metadata };
};

/** The inverse of `loadWeights`. */
export const weightsToBytes = (weights: DenseWeights): Uint8Array => {
  const tensors = new Map<string, Tensor>();
  for (const { name, at, rows, columns, isNorm } of parameterTable(weights.shape)) {
    tensors.set(name, { dims: isNorm ? [columns] : [rows, columns], values: weights.values.subarray(at, at + rows * columns) });
  }
  return writeSafetensors({ tensors, metadata: weights.metadata });
};

/** Untrained weights: norms 1, linears normal with variance 1/in (residual outputs smaller with depth), embedding normal 0.05. */
export const initialWeights = (shape: ModelShape, seed: number): DenseWeights => {
  const values = new Float32Array(placesOf(shape).total);
  const normal = normalStream(seed);
  for (const { name, at, rows, columns, isNorm } of parameterTable(shape)) {
    const isResidual = name.includes('o_proj') || name.includes('down_proj');
    const deviation = name.includes('embed') ? 0.05 : 1 / Math.sqrt(columns * (isResidual ? 2 * shape.layers : 1));
    for (let i = at; i < at + rows * columns; i++) values[i] = isNorm ? 1 : normal() * deviation;
  }
  return { shape, values, metadata: {} };
};
