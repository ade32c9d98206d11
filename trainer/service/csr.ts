type Indices = { readonly crow: ArrayLike<number>; readonly col: ArrayLike<number> };

/**
 * What is wrong with the indices of compressed rows (row r has the values crow[r] to crow[r + 1], at the columns col[..]), null when
 * nothing is. `values`: how many there are.
 */
export function csrFault({ crow, col }: Indices, rows: number, columns: number, values: number): string | null {
  const starts = Array.from(crow);
  const isRising = starts.every((start, row) => start >= (starts[row - 1] ?? 0));
  if (!isRising || starts.length !== rows + 1 || starts[0] !== 0 || starts[rows] !== values || col.length !== values) {
    return `the CSR indices do not fit ${rows} rows and ${values} values`;
  }
  const bad = Array.from(col).find((column) => column < 0 || column >= columns);
  return bad === undefined ? null : `CSR column ${bad} is outside 0 to ${columns - 1}`;
}

/** The row that each value is in. */
export function csrRows(crow: ArrayLike<number>): Int32Array {
  const rows = crow.length - 1;
  const rowOf = new Int32Array(crow[rows] ?? 0);
  for (let row = 0; row < rows; row++) rowOf.fill(row, crow[row], crow[row + 1]);
  return rowOf;
}
