import { create } from '@bufbuild/protobuf';
import { float32Bytes, int64Bytes, readBfloat16, readFloat32, readInt32, readInt64, readInt64AsInt32 } from './tensors.ts';
import { DType, SparseCsrSchema, type Tensor, TensorSchema } from './tinker_public_pb.ts';

/** A tensor in memory. The array's type is the dtype: Float32Array is float32, the integer arrays are int64 on the wire. */
export type TensorValue = {
  /** Row-major elements; only the stored ones when `sparse` is given. */
  readonly values: Float32Array | Int32Array | BigInt64Array;
  readonly shape: readonly number[];
  /** Compressed rows of a 2-D tensor: row r stores values[crowIndices[r] .. crowIndices[r+1]] at columns colIndices[..]. */
  readonly sparse?: { readonly crowIndices: Int32Array; readonly colIndices: Int32Array };
};

/** A bare array stands for a 1-D tensor of its length. A shape that is left out is not sent; readers take such a tensor as 1-D. */
export type TensorInput = (Omit<TensorValue, 'shape'> & { readonly shape?: TensorValue['shape'] }) | TensorValue['values'];

export function asTensorValue(input: TensorInput): TensorValue {
  if (ArrayBuffer.isView(input)) return { values: input, shape: [input.length] };
  return { ...input, shape: input.shape ?? [input.values.length] };
}

export function toWireTensor(input: TensorInput): Tensor {
  const { values, shape, sparse } = asTensorValue(input);
  const bytes = values instanceof Float32Array ? float32Bytes(values) : int64Bytes(values);
  return create(TensorSchema, {
    data:
      sparse === undefined
        ? { case: 'dense', value: bytes }
        : {
            case: 'sparseCsr',
            value: create(SparseCsrSchema, {
              values: bytes,
              crowIndices: int64Bytes(sparse.crowIndices),
              colIndices: int64Bytes(sparse.colIndices),
            }),
          },
    dtype: values instanceof Float32Array ? DType.FLOAT32 : DType.INT64,
    shape: shape.map(BigInt),
  });
}

/**
 * A tensor without a shape reads as 1-D.
 * @throws RangeError when dtype, bytes and shape do not fit together
 */
export function fromWireTensor(tensor: Tensor): TensorValue {
  const { data } = tensor;
  const shape = tensor.shape.map(Number);
  if (data.case === 'sparseCsr') {
    const { values, crowIndices, colIndices } = data.value;
    const sparse = { crowIndices: readInt64AsInt32(crowIndices), colIndices: readInt64AsInt32(colIndices) };
    const stored = readValues(values, tensor.dtype);
    if (stored.length !== sparse.colIndices.length)
      throw new RangeError(`a sparse tensor holds ${stored.length} values for ${sparse.colIndices.length} columns`);
    return { values: stored, shape, sparse };
  }
  const values = readValues(data.value ?? new Uint8Array(0), tensor.dtype);
  if (shape.length === 0) return { values, shape: [values.length] };
  requireCount(shape, values.length);
  return { values, shape };
}

/** @throws RangeError when a dense tensor of that shape has another number of values */
export function requireCount(shape: readonly number[], count: number): void {
  const expected = elementCount(shape);
  if (expected === count) return;
  throw new RangeError(`a tensor of shape [${shape.join(', ')}] holds ${count} values, not ${expected}`);
}

/** int32 widens to int64 and bfloat16 to float32, which is how the protocol's own client reads them. */
export function readValues(bytes: Uint8Array, dtype: DType): TensorValue['values'] {
  switch (dtype) {
    case DType.FLOAT32:
      return readFloat32(bytes);
    case DType.BFLOAT16:
      return readBfloat16(bytes);
    case DType.INT64:
      return readInt64(bytes);
    case DType.INT32:
      return readInt32(bytes);
    default:
      throw new RangeError(`unknown tensor dtype ${dtype}`);
  }
}

/** Bytes per element as stored on the wire. */
export function wireWidth(dtype: DType): number {
  return dtype === DType.INT64 ? 8 : dtype === DType.BFLOAT16 ? 2 : 4;
}

export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}
