/** The binary half of the Tinker protocol, both directions: a client encodes requests and decodes results, a server the reverse. */
export { decodeForwardBackwardOutput, encodeForwardBackwardOutput, type ForwardBackwardOutput } from './forward-backward-output.ts';
export {
  type Chunk,
  decodeForwardBackwardRequest,
  encodeForwardBackwardRequest,
  estimatedBytes,
  type ForwardBackwardRequest,
  type LossFnConfig,
  type ReceivedDatum,
  type ReceivedForwardBackwardRequest,
  type TrainingDatum,
} from './forward-backward-request.ts';
export {
  decodeSampleResponse,
  encodeSampleResponse,
  type SampledSequence,
  type SampleResponse,
  TOPK_MASK,
  type TopkTable,
  topkRow,
} from './sample-response.ts';
export type { TensorInput, TensorValue } from './tensor-values.ts';
