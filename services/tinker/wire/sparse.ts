import type { TrainingDatum } from './forward-backward-request.ts';
import type { TensorInput, TensorValue } from './tensor-values.ts';

/** The inputs that a service reads sparse too. */
const MAY_BE_SPARSE = ['target_tokens', 'weights'];

/** The datum with its two-dimensional targets and weights as compressed rows, where that takes fewer numbers. The protocol's client does so. */
export function withSparseInputs(datum: TrainingDatum): TrainingDatum {
  const changed = MAY_BE_SPARSE.flatMap((name) => {
    const input = datum.lossFnInputs[name];
    const sparse = input === undefined ? null : compressedRows(input);
    return sparse === null ? [] : [[name, sparse] as const];
  });
  return changed.length === 0 ? datum : { ...datum, lossFnInputs: { ...datum.lossFnInputs, ...Object.fromEntries(changed) } };
}

/** Null when the tensor is sparse already, is not two-dimensional, or takes no fewer numbers: rows + 1 + two per non-zero. */
function compressedRows(input: TensorInput): TensorValue | null {
  if (ArrayBuffer.isView(input) || input.sparse !== undefined || input.shape?.length !== 2) return null;
  const { values, shape } = input;
  const [rows = 0, columns = 0] = shape;
  if (values.length !== rows * columns) throw new RangeError(`a tensor of shape [${shape.join(', ')}] holds ${values.length} values`);
  const stored = countNonZero(values);
  if (rows + 1 + 2 * stored >= values.length) return null;
  const kept = newLike(values, stored);
  const colIndices = new Int32Array(stored);
  const crowIndices = new Int32Array(rows + 1);
  let at = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      const value = values[row * columns + column] ?? 0;
      if (isZero(value)) continue;
      kept[at] = value;
      colIndices[at++] = column;
    }
    crowIndices[row + 1] = at;
  }
  return { values: kept, shape, sparse: { crowIndices, colIndices } };
}

function countNonZero(values: TensorValue['values']): number {
  let count = 0;
  for (const value of values) if (!isZero(value)) count++;
  return count;
}

function isZero(value: number | bigint): boolean {
  return value === 0 || value === 0n;
}

function newLike(values: TensorValue['values'], length: number): TensorValue['values'] {
  if (values instanceof Float32Array) return new Float32Array(length);
  return values instanceof Int32Array ? new Int32Array(length) : new BigInt64Array(length);
}
