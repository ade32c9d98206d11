import { fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  type BatchedTensor,
  type ForwardBackwardOutput,
  ForwardBackwardOutputSchema,
  type SampleResponse,
  SampleResponseSchema,
} from '../../services/tinker/wire/tinker_public_pb.ts';
import type { LogprobPlace } from './fault-schemas.ts';

/** A binary result, open for changes; fields that no fault means stay as they are. */
export type OpenResult =
  | { readonly kind: 'sample'; readonly message: SampleResponse }
  | { readonly kind: 'loss'; readonly message: ForwardBackwardOutput };

export const openResult = (bytes: Uint8Array, kind: OpenResult['kind']): OpenResult =>
  kind === 'sample'
    ? { kind, message: fromBinary(SampleResponseSchema, bytes) }
    : { kind, message: fromBinary(ForwardBackwardOutputSchema, bytes) };

export const closeResult = (result: OpenResult): Uint8Array<ArrayBuffer> =>
  result.kind === 'sample' ? toBinary(SampleResponseSchema, result.message) : toBinary(ForwardBackwardOutputSchema, result.message);

/** New values for one list of log-probabilities (of a sequence, of the prompt, of a datum); null leaves the list out. `width`: values per token. */
export type Edit = (row: Float32Array, width: number) => Float32Array | null;

/** Applies `edit` to all log-probabilities at `place`, or to all there are. False when there are none. */
export function editLogprobs(result: OpenResult, place: LogprobPlace | undefined, edit: Edit): boolean {
  const isMeant = (each: LogprobPlace) => place === undefined || place === each;
  let found = false;
  if (result.kind === 'loss') return isMeant('loss') && editLoss(result.message, edit);
  const { message } = result;
  for (const sequence of isMeant('samples') ? message.sequences : []) {
    if (sequence.logprobs === undefined || sequence.logprobs.byteLength === 0) continue;
    found = true;
    const edited = edit(floatsOf(sequence.logprobs), 1);
    if (edited === null) delete sequence.logprobs;
    else sequence.logprobs = bytesOf(edited);
  }
  if (isMeant('prompt') && message.promptLogprobs !== undefined) {
    found = true;
    const edited = edit(floatsOf(message.promptLogprobs), 1);
    if (edited === null) delete message.promptLogprobs;
    else message.promptLogprobs = bytesOf(edited);
  }
  return found;
}

export const hasLogprobs = (result: OpenResult, place: LogprobPlace | undefined): boolean => editLogprobs(result, place, (row) => row);

function editLoss(message: ForwardBackwardOutput, edit: Edit): boolean {
  let found = false;
  for (const record of message.lossFnOutputs) {
    const batched = record.fields.logprobs;
    if (batched === undefined) continue;
    found = true;
    const rows = rowsOf(batched).map((row) => edit(row, widthOf(batched)));
    const kept = rows.filter((row) => row !== null);
    if (kept.length < rows.length) delete record.fields.logprobs;
    else writeRows(batched, kept);
  }
  return found;
}

/** One list per datum. */
export function rowsOf({ data, offsets }: BatchedTensor): Float32Array[] {
  const ends = new BigInt64Array(new Uint8Array(offsets).buffer);
  return Array.from({ length: Math.max(ends.length - 1, 0) }, (_, i) => floatsOf(data.subarray(Number(ends[i]), Number(ends[i + 1]))));
}

export const widthOf = ({ trailingShape }: BatchedTensor): number => trailingShape.reduce((product, size) => product * Number(size), 1);

function writeRows(batched: BatchedTensor, rows: readonly Float32Array[]): void {
  const offsets = new BigInt64Array(rows.length + 1);
  for (const [i, row] of rows.entries()) offsets[i + 1] = (offsets[i] ?? 0n) + BigInt(row.byteLength);
  batched.data = Buffer.concat(rows.map(bytesOf));
  batched.offsets = new Uint8Array(offsets.buffer);
}

export const floatsOf = (bytes: Uint8Array): Float32Array => new Float32Array(new Uint8Array(bytes).buffer);
export const intsOf = (bytes: Uint8Array): Int32Array => new Int32Array(new Uint8Array(bytes).buffer);
export const bytesOf = (values: Float32Array | Int32Array): Uint8Array =>
  new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
