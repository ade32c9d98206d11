import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type TensorValue, withSparseInputs } from './index.ts';

const MODEL_INPUT = Int32Array.of(1, 2, 3);
const weights = (values: number[], shape: number[]) => ({
  modelInput: MODEL_INPUT,
  lossFnInputs: { weights: { values: Float32Array.from(values), shape } },
});

function dense({ values, shape: [rows = 0, columns = 0], sparse }: TensorValue): number[] {
  const all = new Array<number>(rows * columns).fill(0);
  for (let row = 0; row < rows; row++) {
    for (let at = sparse?.crowIndices[row] ?? 0; at < (sparse?.crowIndices[row + 1] ?? 0); at++) {
      all[row * columns + (sparse?.colIndices[at] ?? 0)] = Number(values[at]);
    }
  }
  return all;
}

describe('two-dimensional targets and weights', () => {
  test('as compressed rows where that takes fewer numbers', () => {
    const datum = withSparseInputs(weights([0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0.25, 0, 0.25], [3, 4]));
    expect(datum.lossFnInputs.weights).toEqual({
      values: Float32Array.of(0.5, 0.25, 0.25),
      shape: [3, 4],
      sparse: { crowIndices: Int32Array.of(0, 1, 1, 3), colIndices: Int32Array.of(0, 1, 3) },
    });
  });

  test('as they are where it takes as many, in other inputs, and with another number of dimensions', () => {
    const equal = weights([0, 0, 5, 0], [1, 4]); // 2 + 2 × 1 numbers against 4
    expect(withSparseInputs(equal)).toBe(equal);
    const flat = weights([1, 0, 0, 0, 0, 0, 0, 0], [8]);
    expect(withSparseInputs(flat)).toBe(flat);
    const other = { modelInput: MODEL_INPUT, lossFnInputs: { advantages: { values: new Float32Array(8), shape: [2, 4] } } };
    expect(withSparseInputs(other)).toBe(other);
  });

  test('hold the same numbers', () => {
    const table = fc.integer({ min: 1, max: 6 }).chain((columns) =>
      fc.record({
        columns: fc.constant(columns),
        rows: fc.array(fc.array(fc.constantFrom(0, 0, 0, 0, 7, -1, 2 ** 31 - 1), { minLength: columns, maxLength: columns })),
      }),
    );
    fc.assert(
      fc.property(table, ({ rows, columns }) => {
        const values = Int32Array.from(rows.flat());
        const target_tokens = { values, shape: [rows.length, columns] };
        const sent = withSparseInputs({ modelInput: MODEL_INPUT, lossFnInputs: { target_tokens } }).lossFnInputs
          .target_tokens as TensorValue;
        expect(sent.sparse === undefined ? Array.from(sent.values, Number) : dense(sent)).toEqual([...values]);
      }),
    );
  });

  test('a shape that does not fit its values is refused', () => {
    expect(() => withSparseInputs(weights([1, 2], [2, 4]))).toThrow(/\[2, 4\] holds 2/);
  });
});
