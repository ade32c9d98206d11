import { ServiceFailed } from '../errors.ts';
import { openedSamplingSessionSchema, promiseSchema, samplingSessionSchema } from '../futures/answers.ts';
import { type Future, retrieveJson } from '../futures/futures.ts';
import type { Caller } from '../http/caller.ts';
import { refuseOtherKind, type SamplerPath } from '../paths.ts';
import type { TopkTable } from '../wire/index.ts';
import type { Prompt, Stop, TargetTokens } from './sample-body.ts';
import type { SampleDispatch } from './sample-dispatch.ts';
import { promptScores, type Resubmitted, resubmitted, type SampleAll, sampleAllOf } from './sample-result.ts';

/** One continuation of a prompt of text. */
export type SampleRequest = {
  /** Token ids. */
  readonly prompt: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  /** Token ids that end the sequence; an empty list means that only `maxTokens` ends it. */
  readonly stopTokens: readonly number[];
  readonly seed?: number;
  /** The request id of the very same sample, which the service took before and kept back for want of payment: it is waited for, not made again. */
  readonly standing?: string;
  readonly signal?: AbortSignal;
};

export type SampleResult = Resubmitted & {
  readonly tokens: Int32Array;
  /** Nats, one per token; NaN where the service gave none. */
  readonly logprobs: Float32Array;
  /** With `stop` the stop token is the last of `tokens`. */
  readonly stop: 'stop' | 'length';
  readonly promptCacheHitTokens: number;
};

/** Everything that may be asked of a sample. What is left out has the protocol's default. */
export type SampleAllRequest = {
  readonly prompt: Prompt;
  /** Default 1. */
  readonly numSamples?: number;
  /** Absent: as many as the service gives. */
  readonly maxTokens?: number;
  /** Default 1. */
  readonly temperature?: number;
  /** Sample from the likeliest so many tokens. Default -1: from all. */
  readonly topK?: number;
  /** Sample from the likeliest tokens that hold this probability together. Default 1. */
  readonly topP?: number;
  /** Absent: the model's own end. `[]`: only the length ends a sequence. */
  readonly stop?: Stop;
  readonly seed?: number;
  /** Score the prompt's tokens. Default false. */
  readonly includePromptLogprobs?: boolean;
  /** The likeliest so many tokens at each position of the prompt. Default 0. */
  readonly topkPromptLogprobs?: number;
  /** The likeliest so many tokens at each sampled position. Default 0. */
  readonly topkSampleLogprobs?: number;
  /** Score these tokens at the positions of the prompt after its first: [length - 1, k]. */
  readonly targetPromptLogprobs?: TargetTokens;
  /** So many tokens drawn beside the prompt's own at each position after its first. Default 0. */
  readonly promptAltTokensK?: number;
  /** Score only the last so many tokens of the prompt, 1 .. length - 1. */
  readonly promptLogprobsLastN?: number;
  /** Keep what the loss `stable_reinforce` needs. Default false. */
  readonly recordStabilityInfo?: boolean;
  /** See `SampleRequest`. */
  readonly standing?: string;
  readonly signal?: AbortSignal;
};

export type PromptScores = Resubmitted & {
  /** ln p(tokens[i] | tokens[..i]) in nats; NaN at 0 and where the service gave none. Length of the prompt. */
  readonly logprobs: Float64Array;
  /** The likeliest tokens at each position (see `topkRow`); null unless asked for. */
  readonly topk: TopkTable | null;
  readonly promptCacheHitTokens: number;
  /** What the call sampled besides: one token, none where the sequence fills the context. */
  readonly sampledTokens: number;
};

export type ScoreOptions = {
  /** Default 0. */
  readonly topK?: number;
  /** Score only the last so many tokens, 1 .. length - 1; NaN before them. */
  readonly lastN?: number;
  /** See `SampleRequest`. */
  readonly standing?: string;
  readonly signal?: AbortSignal;
};

/** Samples from one set of weights. Any number of calls may run at once. A lost sample or sampling session is replaced without the caller noticing. */
export class Sampler {
  /** What the results were sampled from: the weights' path or the base model's name, unless named otherwise. */
  readonly version: string;
  /** The sampling session it was opened with, e.g. for `rest.sampler`; a lost one is replaced by another. */
  readonly samplingSessionId: string;
  readonly #dispatch: SampleDispatch;

  constructor(version: string, samplingSessionId: string, dispatch: SampleDispatch) {
    this.version = version;
    this.samplingSessionId = samplingSessionId;
    this.#dispatch = dispatch;
  }

  /**
   * One sampled continuation.
   * @throws BadRequest, BillingPaused, CredentialRefused, RetryLater, ServiceFailed, SessionLost; the signal's reason when aborted
   */
  async sample({ stopTokens, ...request }: SampleRequest): Promise<SampleResult> {
    const sample = await this.sampleAll({ ...request, stop: stopTokens });
    const { promptCacheHitTokens, requestId } = sample;
    const [sequence] = sample.sequences;
    if (sequence === undefined) throw new ServiceFailed('asked for one sequence, got none', { call: 'Sample', requestId });
    const { tokens, stop, logprobs } = sequence;
    const known = logprobs ?? new Float32Array(tokens.length).fill(Number.NaN);
    return { tokens, logprobs: known, stop, promptCacheHitTokens, ...resubmitted(sample) };
  }

  /**
   * Everything the protocol's sample call can do: several continuations, the prompt's scores, likeliest tokens.
   * @throws as `sample`
   */
  async sampleAll(request: SampleAllRequest): Promise<SampleAll> {
    const { signal, standing, ...options } = request;
    return sampleAllOf(await this.#dispatch.run(options, signal, standing), request);
  }

  /**
   * Scores every token of a sequence, on request with the `topK` likeliest tokens at each position. Costs the prefill and one sampled token.
   * @throws as `sample`
   */
  async promptLogprobs(tokens: Int32Array, { topK = 0, lastN, standing, signal }: ScoreOptions = {}): Promise<PromptScores> {
    const asked = { prompt: tokens, maxTokens: 1, includePromptLogprobs: true, topkPromptLogprobs: topK };
    const request = {
      ...asked,
      ...(lastN === undefined ? {} : { promptLogprobsLastN: lastN }),
      ...(standing === undefined ? {} : { standing }),
      ...(signal === undefined ? {} : { signal }),
    };
    return promptScores(await this.sampleAll(request), tokens.length, topK);
  }
}

export type SamplerSource = { readonly baseModel: string } | { readonly samplerPath: SamplerPath };

/**
 * Opens a sampling session and returns its id.
 * @throws SessionLost when the session is gone, BadRequest when the weights are unknown or the path is one of training state
 */
export async function openSamplingSession(caller: Caller, sessionId: string, seqId: number, source: SamplerSource): Promise<string> {
  if ('samplerPath' in source) refuseOtherKind(source.samplerPath, 'sampler_weights', 'sampler');
  const weights = 'baseModel' in source ? { base_model: source.baseModel } : { model_path: source.samplerPath };
  const body = JSON.stringify({ session_id: sessionId, sampling_session_seq_id: seqId, ...weights, type: 'create_sampling_session' });
  const answer = await caller.json(
    { method: 'POST', path: 'create_sampling_session', body, phase: 'submit', subject: 'session' },
    samplingSessionSchema,
  );
  if ('sampling_session_id' in answer) return answer.sampling_session_id;
  const { request_id } = promiseSchema.parse(answer);
  const future: Future = { requestId: request_id, type: 'Sample', subject: 'session', roundTripMs: 0 };
  return (await retrieveJson(caller, future, openedSamplingSessionSchema, undefined)).sampling_session_id;
}
