import {
  add,
  type Code,
  constant,
  type FunctionSource,
  get,
  ifElse,
  increase,
  lessThan,
  multiply,
  set,
  shiftLeft,
  subtract,
  vectorAdd,
  vectorLoad,
  vectorMultiply,
  vectorSplat,
  vectorStore,
  vectorZero,
  whileLoop,
} from './assembler.ts';

/**
 * C[m,n] = A[m,k] · B[k,n] (or += with `accumulate` 1). Addresses and strides are in bytes; n is a multiple of 4.
 * A has a stride for rows and one for columns, so a transposed A needs no copy; rows of B and C are contiguous.
 * Each element of C is summed over k in order with separate multiply and add, whatever the tile it falls into: a row's result
 * is the same to the bit, alone or in a batch, which is what makes cached sampling equal to packed scoring.
 */
export type Matmul = (
  a: number,
  aRow: number,
  aColumn: number,
  b: number,
  bRow: number,
  c: number,
  cRow: number,
  m: number,
  n: number,
  k: number,
  accumulate: number,
) => void;

const A = 0,
  A_ROW = 1,
  A_COLUMN = 2,
  B = 3,
  B_ROW = 4,
  C = 5,
  C_ROW = 6,
  M = 7,
  N = 8,
  K = 9,
  ACCUMULATE = 10;
const PARAMETERS = 11;
const LEFT_M = 11,
  ROW_A = 12,
  ROW_C = 13,
  LEFT_K = 14,
  AT_B = 15,
  AT_A = 16,
  AT_C = 20;
const INTEGERS = 13;
const VECTORS_FROM = PARAMETERS + INTEGERS;

const range = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));

/** One block of `rows` × 4·`vectors` elements kept in registers over the whole sum. */
const tile = (rows: number, vectors: number): Code => {
  const sum = (row: number, v: number) => VECTORS_FROM + row * vectors + v;
  const right = (v: number) => VECTORS_FROM + rows * vectors + v;
  const left = VECTORS_FROM + rows * vectors + vectors;
  const each = (make: (row: number, v: number) => Code): Code => range(rows, (row) => range(vectors, (v) => make(row, v)));
  return [
    range(rows, (row) => [
      set(AT_A + row, row === 0 ? get(ROW_A) : add(get(AT_A + row - 1), get(A_ROW))),
      set(AT_C + row, row === 0 ? get(ROW_C) : add(get(AT_C + row - 1), get(C_ROW))),
    ]),
    ifElse(
      get(ACCUMULATE),
      each((row, v) => set(sum(row, v), vectorLoad(get(AT_C + row), v * 16))),
      each((row, v) => set(sum(row, v), vectorZero)),
    ),
    set(AT_B, get(B)),
    set(LEFT_K, get(K)),
    whileLoop(get(LEFT_K), [
      range(vectors, (v) => set(right(v), vectorLoad(get(AT_B), v * 16))),
      range(rows, (row) => [
        set(left, vectorSplat(get(AT_A + row))),
        range(vectors, (v) => set(sum(row, v), vectorAdd(get(sum(row, v)), vectorMultiply(get(left), get(right(v)))))),
        increase(AT_A + row, get(A_COLUMN)),
      ]),
      increase(AT_B, get(B_ROW)),
      set(LEFT_K, subtract(get(LEFT_K), constant(1))),
    ]),
    each((row, v) => vectorStore(get(AT_C + row), get(sum(row, v)), v * 16)),
  ];
};

/** All rows of a column panel: the panel of B stays in the nearest cache while rows of A stream by. */
const panel = (vectors: number): Code => {
  const rows = (count: number): Code =>
    whileLoop(lessThan(constant(count - 1), get(LEFT_M)), [
      tile(count, vectors),
      increase(ROW_A, multiply(get(A_ROW), constant(count))),
      increase(ROW_C, multiply(get(C_ROW), constant(count))),
      set(LEFT_M, subtract(get(LEFT_M), constant(count))),
    ]);
  const columns = vectors * 4;
  return whileLoop(lessThan(constant(columns - 1), get(N)), [
    set(ROW_A, get(A)),
    set(ROW_C, get(C)),
    set(LEFT_M, get(M)),
    rows(4),
    rows(1),
    increase(B, shiftLeft(constant(columns), 2)),
    increase(C, shiftLeft(constant(columns), 2)),
    set(N, subtract(get(N), constant(columns))),
  ]);
};

export const matmulFunction: FunctionSource = {
  name: 'matmul',
  parameters: PARAMETERS,
  integers: INTEGERS,
  vectors: 4 * 2 + 2 + 1,
  body: [panel(2), panel(1)],
};
