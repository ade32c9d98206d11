import { openedSamplingSessionSchema, promiseSchema, samplingSessionSchema } from './answers.ts';
import type { Caller } from './caller.ts';
import { ServiceFailed } from './errors.ts';
import { type Future, retrieveJson } from './futures.ts';
import type { SampleDispatch } from './sample-dispatch.ts';
import type { SampleResponse, TopkTable } from './wire/index.ts';

export type SampleRequest = {
  /** Token ids. */
  readonly prompt: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  /** Token ids that end the sequence; an empty list means that only `maxTokens` ends it. */
  readonly stopTokens: readonly number[];
  readonly seed?: number;
  readonly signal?: AbortSignal;
};

export type SampleResult = {
  readonly tokens: Int32Array;
  /** Nats, one per token; NaN where the service gave none. */
  readonly logprobs: Float32Array;
  /** With `stop` the stop token is the last of `tokens`. */
  readonly stop: 'stop' | 'length';
  readonly promptCacheHitTokens: number;
};

export type PromptScores = {
  /** ln p(tokens[i] | tokens[..i]) in nats; NaN at 0 and where the service gave none. Length of the prompt. */
  readonly logprobs: Float64Array;
  /** The likeliest tokens at each position (see `topkRow`); null unless asked for. */
  readonly topk: TopkTable | null;
  readonly promptCacheHitTokens: number;
};

/** Samples from one set of weights. Any number of calls may run at once. A lost sample or sampling session is replaced without the caller noticing. */
export class Sampler {
  /** What the results were sampled from: the weights' path or the base model's name, unless named otherwise. */
  readonly version: string;
  readonly #dispatch: SampleDispatch;

  constructor(version: string, dispatch: SampleDispatch) {
    this.version = version;
    this.#dispatch = dispatch;
  }

  /**
   * One sampled continuation.
   * @throws BadRequest, BillingPaused, CredentialRefused, RetryLater, ServiceFailed, SessionLost; the signal's reason when aborted
   */
  async sample(request: SampleRequest): Promise<SampleResult> {
    const { prompt, maxTokens, temperature, stopTokens, seed, signal } = request;
    const response = await this.#dispatch.run(
      { prompt, maxTokens, temperature, stopTokens, seed, promptLogprobs: false, topkPrompt: 0 },
      signal,
    );
    const sequence = onlySequence(response);
    const logprobs = sequence.logprobs ?? new Float32Array(sequence.tokens.length).fill(Number.NaN);
    return { tokens: sequence.tokens, logprobs, stop: sequence.stopReason, promptCacheHitTokens: response.promptCacheHitTokens };
  }

  /**
   * Scores every token of a sequence, on request with the `topK` likeliest tokens at each position. Costs the prefill and one sampled token.
   * @throws as `sample`
   */
  async promptLogprobs(tokens: Int32Array, options: { readonly topK?: number; readonly signal?: AbortSignal } = {}): Promise<PromptScores> {
    const topkPrompt = options.topK ?? 0;
    const request = { prompt: tokens, maxTokens: 1, temperature: 1, stopTokens: null, seed: undefined, promptLogprobs: true, topkPrompt };
    const response = await this.#dispatch.run(request, options.signal);
    const topk = response.topkPromptLogprobs;
    if (topkPrompt > 0 && topk?.length !== tokens.length) {
      throw new ServiceFailed(`asked for the top ${topkPrompt} tokens of ${tokens.length} positions, got ${topk?.length ?? 0}`, {
        call: 'Sample',
      });
    }
    return { logprobs: aligned(response, tokens.length), topk, promptCacheHitTokens: response.promptCacheHitTokens };
  }
}

export type SamplerSource = { readonly baseModel: string } | { readonly samplerPath: string };

/** Opens a sampling session and returns its id. @throws SessionLost when the session is gone, BadRequest when the weights are unknown */
export async function openSamplingSession(caller: Caller, sessionId: string, seqId: number, source: SamplerSource): Promise<string> {
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

function onlySequence(response: SampleResponse): SampleResponse['sequences'][number] {
  const [sequence] = response.sequences;
  if (sequence === undefined || response.sequences.length !== 1) {
    throw new ServiceFailed(`asked for one sequence, got ${response.sequences.length}`, { call: 'Sample' });
  }
  if (sequence.logprobs !== null && sequence.logprobs.length !== sequence.tokens.length) {
    throw new ServiceFailed(`${sequence.tokens.length} tokens came with ${sequence.logprobs.length} log-probabilities`, { call: 'Sample' });
  }
  return sequence;
}

/** Some servers leave position 0 out instead of sending NaN for it. */
function aligned({ promptLogprobs }: SampleResponse, length: number): Float64Array {
  const given = promptLogprobs?.length;
  if (promptLogprobs === null || (given !== length && given !== length - 1)) {
    throw new ServiceFailed(`asked for the log-probabilities of ${length} prompt tokens, got ${given ?? 0}`, { call: 'Sample' });
  }
  const logprobs = new Float64Array(length);
  logprobs.set(promptLogprobs, length - promptLogprobs.length);
  if (length > 0) logprobs[0] = Number.NaN;
  return logprobs;
}
