import { ServiceFailed } from '../errors.ts';
import type { SampledSequence, SampleResponse, TensorValue, TopkTable } from '../wire/index.ts';
import { promptLength } from './sample-body.ts';
import type { PromptScores, SampleAllRequest } from './sampler.ts';

/** What the dispatch brings: the response, its future, and the ids of its sequences where the service gives them. */
export type DispatchedSample = SampleResponse & Resubmitted & { readonly sequenceIds: readonly string[]; readonly requestId: string };

/** How often the sample was submitted before, in vain: the service lost it, and may have charged for it. Absent: never. */
export type Resubmitted = { readonly resubmissions?: number };

export const resubmitted = ({ resubmissions }: Resubmitted): Resubmitted => (resubmissions === undefined ? {} : { resubmissions });

export type Sequence = {
  readonly tokens: Int32Array;
  /** Nats, one per token; null when the service gave none. */
  readonly logprobs: Float32Array | null;
  /** With `stop` the stop token is the last of `tokens`. */
  readonly stop: 'stop' | 'length';
  /** The service's name for it, which provenance spans of a training datum refer to; null when it gives none. */
  readonly sequenceId: string | null;
  /** The likeliest tokens at each sampled position; null unless asked for and given. */
  readonly topk: TopkTable | null;
};

export type SampleAll = Resubmitted & {
  readonly sequences: readonly Sequence[];
  /** Nats per position of the prompt; NaN at 0 and where the service gave none. Null unless asked for and given. */
  readonly promptLogprobs: Float32Array | null;
  /** See `topkRow`. */
  readonly topkPromptLogprobs: TopkTable | null;
  readonly targetPromptLogprobs: TensorValue | null;
  readonly promptAltTokens: { readonly tokens: TensorValue; readonly logprobs: TensorValue } | null;
  readonly promptCacheHitTokens: number;
  /** The service's name for the call. */
  readonly requestId: string;
};

/** @throws ServiceFailed when the response is not one to this request */
export function sampleAllOf(response: DispatchedSample, request: SampleAllRequest): SampleAll {
  const { requestId } = response;
  const failed = failureOf(requestId);
  const asked = request.numSamples ?? 1;
  if (response.sequences.length !== asked) failed(`asked for ${asked} sequences, got ${response.sequences.length}`);
  if ((request.promptAltTokensK ?? 0) > 0 && response.promptAltTokens === null) failed('asked for other tokens of the prompt, got none');
  const { topkPromptLogprobs, targetPromptLogprobs, promptAltTokens, promptCacheHitTokens, sequenceIds } = response;
  return {
    sequences: response.sequences.map((sequence, i) => sequenceOf(sequence, sequenceIds[i] ?? null, failed)),
    promptLogprobs: response.promptLogprobs && aligned(response.promptLogprobs, promptLength(request.prompt), failed),
    topkPromptLogprobs,
    targetPromptLogprobs,
    promptAltTokens,
    promptCacheHitTokens,
    requestId,
    ...resubmitted(response),
  };
}

/** @throws ServiceFailed when something asked for is missing */
export function promptScores(sample: SampleAll, length: number, topK: number): PromptScores {
  const { promptLogprobs, topkPromptLogprobs: topk, promptCacheHitTokens, requestId } = sample;
  const failed = failureOf(requestId);
  if (promptLogprobs === null) return failed(`asked for the log-probabilities of ${length} prompt tokens, got 0`);
  if (topK > 0 && topk?.length !== length) failed(`asked for the top ${topK} tokens of ${length} positions, got ${topk?.length ?? 0}`);
  const sampledTokens = sample.sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const logprobs = Float64Array.from(promptLogprobs);
  return { logprobs, topk: topK > 0 ? topk : null, promptCacheHitTokens, sampledTokens, ...resubmitted(sample) };
}

function sequenceOf({ tokens, logprobs, stopReason, topk }: SampledSequence, sequenceId: string | null, failed: Fail): Sequence {
  if (logprobs !== null && logprobs.length !== tokens.length) {
    failed(`${tokens.length} tokens came with ${logprobs.length} log-probabilities`);
  }
  return { tokens, logprobs, stop: stopReason, sequenceId, topk };
}

/** Some servers leave position 0 out instead of sending NaN for it. A prompt with images has the length that the service says. */
function aligned(given: Float32Array, length: number | null, failed: Fail): Float32Array {
  const isShort = length !== null && given.length === length - 1;
  if (length !== null && given.length !== length && !isShort) {
    failed(`asked for the log-probabilities of ${length} prompt tokens, got ${given.length}`);
  }
  const logprobs = new Float32Array(isShort ? given.length + 1 : given.length);
  logprobs.set(given, isShort ? 1 : 0);
  if (logprobs.length > 0) logprobs[0] = Number.NaN;
  return logprobs;
}

type Fail = (message: string) => never;

function failureOf(requestId: string): Fail {
  return (message) => {
    throw new ServiceFailed(message, { call: 'Sample', requestId });
  };
}
