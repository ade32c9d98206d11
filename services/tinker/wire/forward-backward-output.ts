import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { asTensorValue, elementCount, readValues, type TensorInput, type TensorValue, wireWidth } from './tensor-values.ts';
import { float32Bytes, int64Bytes, readInt64AsInt32 } from './tensors.ts';
import {
  type ArrayRecord,
  ArrayRecordSchema,
  type BatchedTensor,
  BatchedTensorSchema,
  DType,
  ForwardBackwardOutputSchema,
} from './tinker_public_pb.ts';

/** What the loss returned: one record of named arrays per datum, in the datums' order, and metrics named `name:reduction`. */
export type ForwardBackwardOutput<T extends TensorInput = TensorValue> = {
  readonly lossFnOutputType: string;
  readonly lossFnOutputs: readonly Readonly<Record<string, T>>[];
  readonly metrics: Readonly<Record<string, number>>;
};

/** How the protocol's client names an output without records. */
const NO_RECORDS_TYPE = 'ArrayRecord';

/**
 * Writes all datums as one batched record. They must agree in field names, dtypes and in every dimension but the first.
 * @throws RangeError when they do not
 */
export function encodeForwardBackwardOutput(output: ForwardBackwardOutput<TensorInput>): Uint8Array<ArrayBuffer> {
  const names = Object.keys(output.lossFnOutputs[0] ?? {}).sort();
  const fields = names.map((name) => [name, toBatchedTensor(name, output.lossFnOutputs)] as const);
  const record = create(ArrayRecordSchema, {
    typeTag: output.lossFnOutputType,
    fields: Object.fromEntries(fields),
    numDatums: BigInt(output.lossFnOutputs.length),
  });
  const metrics = Object.entries(output.metrics).sort(([a], [b]) => (a < b ? -1 : 1));
  return toBinary(
    ForwardBackwardOutputSchema,
    create(ForwardBackwardOutputSchema, {
      lossFnOutputType: output.lossFnOutputType,
      lossFnOutputs: output.lossFnOutputs.length > 0 ? [record] : [],
      metrics: Object.fromEntries(metrics),
    }),
  );
}

/** @throws Error (from protobuf) or RangeError when the bytes are no valid output */
export function decodeForwardBackwardOutput(bytes: Uint8Array): ForwardBackwardOutput {
  const { lossFnOutputType: type, lossFnOutputs: records, metrics } = fromBinary(ForwardBackwardOutputSchema, bytes);
  if (records.length === 0) return { lossFnOutputType: type || NO_RECORDS_TYPE, lossFnOutputs: [], metrics };
  return { lossFnOutputType: type.slice(type.lastIndexOf(':') + 1), lossFnOutputs: joinRecords(records), metrics };
}

/** The records one after the other. Each has the same fields, but dtype and trailing shape of its own. */
function joinRecords(records: readonly ArrayRecord[]): Record<string, TensorValue>[] {
  const arrays = new Map<string, TensorValue[]>();
  for (const { fields } of records) {
    for (const [name, batched] of Object.entries(fields)) {
      const all = arrays.get(name) ?? [];
      for (const array of splitBatched(name, batched)) all.push(array);
      arrays.set(name, all);
    }
  }
  // Writers that count no datums anywhere mean: as many as the first field has.
  const counted = records.reduce((sum, { numDatums }) => sum + Number(numDatums), 0);
  const count = counted || ([...arrays.values()][0]?.length ?? 0);
  for (const [name, perDatum] of arrays) {
    if (perDatum.length !== count)
      throw new RangeError(`field "${name}" has arrays for ${perDatum.length} datums, the records count ${count}`);
  }
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(Array.from(arrays, ([name, perDatum]) => [name, perDatum[i] as TensorValue] as const)),
  );
}

/** Offsets are byte positions in the stored bytes, so they are divided by the stored width, not by the width after widening. */
function splitBatched(name: string, batched: BatchedTensor): TensorValue[] {
  const offsets = readInt64AsInt32(batched.offsets);
  const values = readValues(batched.data, batched.dtype);
  const width = wireWidth(batched.dtype);
  const trailing = batched.trailingShape.map(Number);
  const rowElements = elementCount(trailing);
  return Array.from({ length: Math.max(0, offsets.length - 1) }, (_, i) => {
    const start = (offsets[i] as number) / width;
    const end = (offsets[i + 1] as number) / width;
    const rows = rowElements === 0 ? 0 : (end - start) / rowElements;
    if (!(Number.isInteger(start) && start >= 0 && end <= values.length && Number.isInteger(rows) && rows >= 0)) {
      throw new RangeError(`field "${name}": datum ${i} spans bytes ${offsets[i]} .. ${offsets[i + 1]} of ${batched.data.byteLength}`);
    }
    return { values: values.slice(start, end), shape: [rows, ...trailing] };
  });
}

function toBatchedTensor(name: string, datums: readonly Readonly<Record<string, TensorInput>>[]): BatchedTensor {
  const tensors = datums.map((datum, i) => {
    const input = datum[name];
    if (input === undefined) throw new RangeError(`datum ${i} has no field "${name}", datum 0 has`);
    return asTensorValue(input);
  });
  const trailing = tensors[0]?.shape.slice(1) ?? [];
  const isFloat = tensors[0]?.values instanceof Float32Array;
  const pieces = tensors.map((tensor, i) => {
    if (
      tensor.values instanceof Float32Array !== isFloat ||
      tensor.shape.slice(1).join() !== trailing.join() ||
      tensor.sparse !== undefined
    ) {
      throw new RangeError(`field "${name}" of datum ${i} differs from datum 0 in dtype or trailing shape`);
    }
    return tensor.values instanceof Float32Array ? float32Bytes(tensor.values) : int64Bytes(tensor.values);
  });
  const offsets = new Int32Array(pieces.length + 1);
  for (const [i, piece] of pieces.entries()) offsets[i + 1] = (offsets[i] as number) + piece.byteLength;
  return create(BatchedTensorSchema, {
    data: Buffer.concat(pieces),
    offsets: int64Bytes(offsets),
    dtype: isFloat ? DType.FLOAT32 : DType.INT64,
    trailingShape: trailing.map(BigInt),
  });
}
