import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { DType, type Tensor, TensorSchema } from '../../services/tinker/wire/tinker_public_pb.ts';
import { UserError } from './failures.ts';
import { floatTable, intTable } from './loss-tensors.ts';

const bytes = (array: Int32Array | Float32Array | BigInt64Array): Uint8Array => new Uint8Array(array.buffer);
const int64 = (values: readonly number[]): Uint8Array => bytes(BigInt64Array.from(values, BigInt));
const dense = (values: Uint8Array, dtype: DType, shape: readonly number[]): Tensor =>
  create(TensorSchema, { data: { case: 'dense', value: values }, dtype, shape: shape.map(BigInt) });
type Csr = { readonly values: readonly number[]; readonly crow: readonly number[]; readonly col: readonly number[] };
const sparse = ({ values, crow, col }: Csr, shape: readonly number[]): Tensor =>
  create(TensorSchema, {
    data: { case: 'sparseCsr', value: { values: int64(values), crowIndices: int64(crow), colIndices: int64(col) } },
    dtype: DType.INT64,
    shape: shape.map(BigInt),
  });
const ints = (tensor: Tensor) => intTable(tensor, 'targets', 8);
const good: Csr = { values: [7, 8, 9], crow: [0, 1, 1, 3], col: [1, 0, 2] };

describe('a tensor of a loss', () => {
  it.each([
    ['without a shape', dense(int64([1, 2]), DType.INT64, []), [1, 2], 2, undefined],
    ['of one dimension', dense(int64([1, 2]), DType.INT64, [2]), [1, 2], 2, undefined],
    ['of 32-bit integers', dense(bytes(Int32Array.of(1, -2)), DType.INT32, [2]), [1, -2], 2, undefined],
    ['of two dimensions', dense(int64([1, 2, 3, 4]), DType.INT64, [2, 2]), [1, 2, 3, 4], 2, 2],
    ['with listed cells', sparse(good, [3, 3]), [0, 7, 0, 0, 0, 0, 8, 0, 9], 3, 3],
    ['with nothing in it', sparse({ values: [], crow: [0, 0], col: [] }, [1, 2]), [0, 0], 1, 2],
  ])('%s is read', (_, tensor, values, rows, columns) => {
    expect(ints(tensor)).toEqual({ values: Int32Array.from(values), rows, columns });
  });

  it.each([
    ['three dimensions', dense(int64([1]), DType.INT64, [1, 1, 1]), 'one or two dimensions'],
    ['a shape that does not fit', dense(int64([1, 2, 3]), DType.INT64, [2, 2]), '3 values, but its shape [2, 2] has 4'],
    ['too many columns', dense(int64([]), DType.INT64, [0, 9]), '9 columns; 1 to 8'],
    ['another type', dense(bytes(Float32Array.of(1)), DType.FLOAT32, [1]), 'must be int64'],
    ['half a value', dense(new Uint8Array(12), DType.INT64, [1]), '12 bytes are not a whole number of 8-byte values'],
    ['a value beyond 32 bits', dense(int64([1, 2 ** 40]), DType.INT64, [2]), 'targets[1]: 1099511627776 does not fit 32 bits'],
    ['listed cells in one dimension', sparse(good, [3]), 'two dimensions'],
    ['row starts that are too few', sparse({ ...good, crow: [0, 3] }, [3, 3]), 'CSR'],
    ['row starts that fall', sparse({ ...good, crow: [0, 2, 1, 3] }, [3, 3]), 'CSR'],
    ['a cell outside the table', sparse({ ...good, col: [1, 0, 3] }, [3, 3]), 'CSR column 3 is outside 0 to 2'],
    ['cells without a column', sparse({ ...good, col: [1] }, [3, 3]), 'CSR'],
  ])('with %s is refused by name', (_, tensor, message) => {
    expect(() => ints(tensor)).toThrow(UserError);
    expect(() => ints(tensor)).toThrow(/^targets(\[\d+\])?: /);
    expect(() => ints(tensor)).toThrow(message);
  });

  it('has finite numbers only', () => {
    const tensor = dense(bytes(Float32Array.of(1, Number.NEGATIVE_INFINITY)), DType.FLOAT32, [2]);
    expect(() => floatTable(tensor, 'weights', 1)).toThrow('weights[1]: -Infinity is not a finite number');
  });
});
