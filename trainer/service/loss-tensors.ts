import type { Datum, Tensor } from '../../services/tinker/wire/tinker_public_pb.ts';
import { DType } from '../../services/tinker/wire/tinker_public_pb.ts';
import { csrFault, csrRows } from './csr.ts';
import { UserError } from './failures.ts';

/** Numbers of a tensor of one dimension (`columns` undefined) or of two, [rows, columns], row-major. */
export type Table<Numbers> = { readonly values: Numbers; readonly rows: number; readonly columns: number | undefined };

/** Token ids of a datum's text. Throws UserError naming what is no text. */
export function modelInput(datum: Datum, at: string): Int32Array {
  const parts = datum.modelInput.map(({ chunk }, i) => {
    if (chunk.case !== 'encodedText') throw new UserError(`${at}.model_input[${i}]: only text chunks are served here`);
    return new Int32Array(whole(chunk.value.tokens, 4, `${at}.model_input[${i}].tokens`));
  });
  if (parts.length === 1) return parts[0] ?? new Int32Array();
  return Int32Array.from(parts.flatMap((part) => [...part]));
}

/** `maxColumns` bounds what a sparse tensor can blow up to. */
export function intTable(tensor: Tensor, field: string, maxColumns: number): Table<Int32Array> {
  return dense(tensor, field, maxColumns, (bytes) => {
    if (tensor.dtype === DType.INT32) return new Int32Array(whole(bytes, 4, field));
    if (tensor.dtype !== DType.INT64) throw new UserError(`${field}: must be int64, got dtype ${tensor.dtype}`);
    return narrowed(whole(bytes, 8, field), field);
  });
}

export function floatTable(tensor: Tensor, field: string, maxColumns: number): Table<Float32Array> {
  const table = dense(tensor, field, maxColumns, (bytes) => {
    if (tensor.dtype !== DType.FLOAT32) throw new UserError(`${field}: must be float32, got dtype ${tensor.dtype}`);
    return new Float32Array(whole(bytes, 4, field));
  });
  const bad = table.values.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) throw new UserError(`${field}[${bad}]: ${table.values[bad]} is not a finite number`);
  return table;
}

function dense<Numbers extends Int32Array | Float32Array>(
  tensor: Tensor,
  field: string,
  maxColumns: number,
  read: (bytes: Uint8Array) => Numbers,
): Table<Numbers> {
  const shape = tensor.shape.map(Number);
  const [rows = 0, columns] = shape;
  if (shape.length > 2) throw new UserError(`${field}: must have one or two dimensions, got ${shape.length}`);
  if (columns !== undefined && (columns < 1 || columns > maxColumns)) {
    throw new UserError(`${field}: ${columns} columns; 1 to ${maxColumns} are served here`);
  }
  if (tensor.data.case === 'sparseCsr') {
    if (columns === undefined) throw new UserError(`${field}: a sparse tensor needs a shape of two dimensions`);
    const { values, crowIndices, colIndices } = tensor.data.value;
    const crow = narrowed(whole(crowIndices, 8, field), field);
    return { values: spread(read(values), crow, narrowed(whole(colIndices, 8, field), field), [rows, columns], field), rows, columns };
  }
  const values = read(tensor.data.case === 'dense' ? tensor.data.value : new Uint8Array());
  if (shape.length === 0) return { values, rows: values.length, columns };
  const expected = rows * (columns ?? 1);
  if (values.length !== expected)
    throw new UserError(`${field}: ${values.length} values, but its shape [${shape.join(', ')}] has ${expected}`);
  return { values, rows, columns };
}

/** What a sparse tensor does not list is 0. */
function spread<Numbers extends Int32Array | Float32Array>(
  values: Numbers,
  crow: Int32Array,
  col: Int32Array,
  [rows, columns]: readonly [number, number],
  field: string,
): Numbers {
  const fault = csrFault({ crow, col }, rows, columns, values.length);
  if (fault !== null) throw new UserError(`${field}: ${fault}`);
  const all = (values instanceof Int32Array ? new Int32Array(rows * columns) : new Float32Array(rows * columns)) as Numbers;
  for (const [i, row] of csrRows(crow).entries()) all[row * columns + (col[i] as number)] = values[i] as number;
  return all;
}

function narrowed(bytes: ArrayBuffer, field: string): Int32Array {
  return Int32Array.from(new BigInt64Array(bytes), (value, i) => {
    if (value !== BigInt.asIntN(32, value)) throw new UserError(`${field}[${i}]: ${value} does not fit 32 bits`);
    return Number(value);
  });
}

function whole(bytes: Uint8Array, size: 4 | 8, field: string): ArrayBuffer {
  if (bytes.length % size !== 0) throw new UserError(`${field}: ${bytes.length} bytes are not a whole number of ${size}-byte values`);
  return bytes.slice().buffer as ArrayBuffer;
}
