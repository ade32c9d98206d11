/** The binary half of the Tinker protocol, both directions: a client encodes requests and decodes results, a server the reverse. */

export { compressBody, decompressBody } from './compression.ts';
export { decodeForwardBackwardRequest } from './decode-request.ts';
export { encodeForwardBackwardRequest } from './encode-request.ts';
export { decodeForwardBackwardOutput, encodeForwardBackwardOutput, type ForwardBackwardOutput } from './forward-backward-output.ts';
export {
  type Chunk,
  chunksOf,
  estimatedBytes,
  type ForwardBackwardRequest,
  type LossFnConfig,
  type ProvenanceSpan,
  type ReceivedDatum,
  type ReceivedForwardBackwardRequest,
  type TrainingDatum,
} from './forward-backward-request.ts';
export { jsonForwardBackwardBody } from './json-bodies.ts';
export {
  decodeSampleResponse,
  encodeSampleResponse,
  type SampledSequence,
  type SampleResponse,
  TOPK_MASK,
  type TopkTable,
  topkRow,
} from './sample-response.ts';
export { withSparseInputs } from './sparse.ts';
export { asTensorValue, requireCount, type TensorInput, type TensorValue } from './tensor-values.ts';
