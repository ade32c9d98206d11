import type { TensorInput, TensorValue } from './tensor-values.ts';
import { wireBytes } from './tensors.ts';

/** One piece of a model input. `tokens` are int32 ids. */
export type Chunk =
  | { readonly type: 'encoded_text'; readonly tokens: Int32Array }
  | { readonly type: 'image'; readonly data: Uint8Array; readonly format: string; readonly expectedTokens?: number }
  | { readonly type: 'dmel'; readonly dmel: Uint8Array };

/**
 * Where a run of tokens comes from: positions `offset .. offset + length` of the prompt that the sampled sequence was asked
 * with, or of the sequence itself. `sequenceId` is the id that the service gave the sample.
 */
export type ProvenanceSpan = {
  readonly type: 'prompt_tokens' | 'sampled_tokens';
  readonly sequenceId: string;
  readonly offset: number;
  readonly length: number;
};

/**
 * One training sequence as the protocol wants it: inputs are shifted already, so row i of every loss input belongs to
 * the prediction of `target_tokens[i]` after `modelInput[..i]`. A bare Int32Array is one chunk of text.
 */
export type TrainingDatum = Provenance & {
  readonly modelInput: Int32Array | readonly Chunk[];
  readonly lossFnInputs: Readonly<Record<string, TensorInput>>;
};

/** Some losses ask for it. Each list tiles its field: the lengths add up to that of the model input and of `target_tokens`. */
type Provenance = {
  readonly modelInputSpans?: readonly ProvenanceSpan[];
  readonly lossFnInputSpans?: readonly ProvenanceSpan[];
};

export type LossFnConfig = Readonly<Record<string, number | string>>;

export type ForwardBackwardRequest = {
  readonly modelId: string;
  readonly seqId: number;
  readonly datums: readonly TrainingDatum[];
  readonly lossFn: string;
  readonly lossFnConfig: LossFnConfig;
  readonly forwardOnly: boolean;
};

/** What a server reads: chunks and tensors are always spelled out, spans are there when there are any. */
export type ReceivedDatum = Provenance & {
  readonly modelInput: readonly Chunk[];
  readonly lossFnInputs: Readonly<Record<string, TensorValue>>;
};
export type ReceivedForwardBackwardRequest = Omit<ForwardBackwardRequest, 'datums'> & { readonly datums: readonly ReceivedDatum[] };

export function chunksOf({ modelInput }: TrainingDatum): readonly Chunk[] {
  return modelInput instanceof Int32Array ? [{ type: 'encoded_text', tokens: modelInput }] : modelInput;
}

/** The protocol's estimate of a datum's size, by which batches are cut: 4 bytes per text token, tensors as stored. */
export function estimatedBytes(datum: TrainingDatum): number {
  let bytes = 0;
  for (const chunk of chunksOf(datum)) {
    if (chunk.type === 'encoded_text') bytes += 4 * chunk.tokens.length;
    else bytes += chunk.type === 'image' ? chunk.data.byteLength : chunk.dmel.byteLength;
  }
  for (const input of Object.values(datum.lossFnInputs)) bytes += estimatedTensorBytes(input);
  return bytes;
}

function estimatedTensorBytes(input: TensorInput): number {
  if (ArrayBuffer.isView(input)) return wireBytes(input);
  const { values, sparse } = input;
  return wireBytes(values) + (sparse === undefined ? 0 : wireBytes(sparse.crowIndices) + wireBytes(sparse.colIndices));
}
