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
  const message = fromBinary(ForwardBackwardOutputSchema, bytes);
  const type = message.lossFnOutputType.slice(message.lossFnOutputType.lastIndexOf(':') + 1);
  return {
    lossFnOutputType: type === '' && message.lossFnOutputs.length === 0 ? NO_RECORDS_TYPE : type,
    lossFnOutputs: splitRecords(message.lossFnOutputs),
    metrics: message.metrics,
  };
}

function splitRecords(records: readonly ArrayRecord[]): Record<string, TensorValue>[] {
  // Writers that count no datums anywhere mean: as many as the first field has.
  const uncounted = records.every((record) => record.numDatums === 0n);
  return records.flatMap((record) => {
    const count = uncounted ? (Object.values(record.fields).map(datumsIn)[0] ?? 0) : Number(record.numDatums);
    const datums = Array.from({ length: count }, (): Record<string, TensorValue> => ({}));
    for (const [name, batched] of Object.entries(record.fields)) splitField(name, batched, datums);
    return datums;
  });
}

function datumsIn(batched: BatchedTensor): number {
  return Math.max(0, batched.offsets.byteLength / 8 - 1);
}

/** Offsets are byte positions in the stored bytes, so they are divided by the stored width, not by the width after widening. */
function splitField(name: string, batched: BatchedTensor, datums: Record<string, TensorValue>[]): void {
  if (datumsIn(batched) !== datums.length) {
    throw new RangeError(`field "${name}" has arrays for ${datumsIn(batched)} datums, its record counts ${datums.length}`);
  }
  const offsets = readInt64AsInt32(batched.offsets);
  const values = readValues(batched.data, batched.dtype);
  const width = wireWidth(batched.dtype);
  const trailing = batched.trailingShape.map(Number);
  for (const [i, datum] of datums.entries()) {
    const start = (offsets[i] as number) / width;
    const end = (offsets[i + 1] as number) / width;
    const rows = (end - start) / elementCount(trailing);
    if (!(Number.isInteger(start) && start >= 0 && end <= values.length && Number.isInteger(rows) && rows >= 0)) {
      throw new RangeError(`field "${name}": datum ${i} spans bytes ${offsets[i]} .. ${offsets[i + 1]} of ${batched.data.byteLength}`);
    }
    datum[name] = { values: values.slice(start, end), shape: [rows, ...trailing] };
  }
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
