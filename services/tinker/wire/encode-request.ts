import { type Chunk, chunksOf, type ForwardBackwardRequest, type ProvenanceSpan, type TrainingDatum } from './forward-backward-request.ts';
import { MessageWriter } from './message-writer.ts';
import type { TensorInput } from './tensor-values.ts';
import { int32Bytes, type NumberArray, wireBytes, writeWire } from './tensors.ts';
import { DType } from './tinker_public_pb.ts';

/**
 * The bytes of a ForwardBackwardRequest: fields in number order and map keys sorted, so equal requests have equal bytes.
 * Every tensor is copied once, into the result. Field numbers are those of `tinker_public.proto`.
 */
export function encodeForwardBackwardRequest(request: ForwardBackwardRequest): Uint8Array<ArrayBuffer> {
  const { modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly } = request;
  const message = new MessageWriter();
  if (modelId !== '') message.string(1, modelId);
  if (seqId !== 0) message.integer(2, seqId);
  for (const datum of datums) message.message(3, datumMessage(datum));
  if (lossFn !== '') message.string(4, lossFn);
  const config = sortedEntries(lossFnConfig);
  for (const [key, value] of config) if (typeof value === 'number') message.message(5, mapEntry(key).double(2, value));
  if (forwardOnly) message.integer(6, 1);
  for (const [key, value] of config) message.message(7, mapEntry(key).message(2, configValue(value)));
  return message.finish();
}

function datumMessage(datum: TrainingDatum): MessageWriter {
  const message = new MessageWriter();
  for (const chunk of chunksOf(datum)) message.message(1, chunkMessage(chunk));
  for (const [name, input] of sortedEntries(datum.lossFnInputs)) message.message(2, mapEntry(name).message(2, tensorMessage(input)));
  for (const span of datum.modelInputSpans ?? []) message.message(3, spanMessage(span));
  for (const span of datum.lossFnInputSpans ?? []) message.message(4, spanMessage(span));
  return message;
}

function chunkMessage(chunk: Chunk): MessageWriter {
  const inner = new MessageWriter();
  switch (chunk.type) {
    case 'encoded_text':
      return new MessageWriter().message(1, bytesUnlessEmpty(inner, 1, int32Bytes(chunk.tokens)));
    case 'image':
      bytesUnlessEmpty(inner, 1, chunk.data);
      if (chunk.format !== '') inner.string(2, chunk.format);
      if (chunk.expectedTokens !== undefined) inner.integer(3, chunk.expectedTokens);
      return new MessageWriter().message(2, inner);
    case 'dmel':
      return new MessageWriter().message(3, bytesUnlessEmpty(inner, 1, chunk.dmel));
  }
}

function tensorMessage(input: TensorInput): MessageWriter {
  const message = new MessageWriter();
  const tensor = ArrayBuffer.isView(input) ? { values: input, shape: [input.length] } : input;
  const { values, shape = [], sparse } = tensor;
  if (sparse === undefined) {
    arrayField(message, 1, values);
  } else {
    const csr = new MessageWriter();
    for (const [i, array] of [values, sparse.crowIndices, sparse.colIndices].entries()) if (array.length > 0) arrayField(csr, i + 1, array);
    message.message(2, csr);
  }
  return message.integer(3, values instanceof Float32Array ? DType.FLOAT32 : DType.INT64).packed(4, shape);
}

function spanMessage({ type, sequenceId, offset, length }: ProvenanceSpan): MessageWriter {
  const span = new MessageWriter();
  if (sequenceId !== '') span.string(1, sequenceId);
  if (offset !== 0) span.integer(2, offset);
  if (length !== 0) span.integer(3, length);
  return new MessageWriter().message(type === 'prompt_tokens' ? 1 : 2, span);
}

function configValue(value: number | string): MessageWriter {
  return typeof value === 'number' ? new MessageWriter().double(1, value) : new MessageWriter().string(2, value);
}

function mapEntry(key: string): MessageWriter {
  return new MessageWriter().string(1, key);
}

function arrayField(message: MessageWriter, field: number, values: NumberArray): void {
  message.bytes(field, wireBytes(values), (target) => writeWire(values, target));
}

function bytesUnlessEmpty(message: MessageWriter, field: number, bytes: Uint8Array): MessageWriter {
  return bytes.byteLength === 0 ? message : message.bytes(field, bytes.byteLength, (target) => target.set(bytes));
}

function sortedEntries<Value>(map: Readonly<Record<string, Value>>): [string, Value][] {
  return Object.entries(map).sort(([a], [b]) => compareKeys(a, b));
}

/**
 * By the keys' bytes, which is not the order of JavaScript strings beyond the basic plane; a key goes before its own
 * beginning, as the official client's encoder (upb, deterministic) has it.
 */
export function compareKeys(a: string, b: string): number {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  const common = Math.min(left.length, right.length);
  return left.compare(right, 0, common, 0, common) || right.length - left.length;
}
