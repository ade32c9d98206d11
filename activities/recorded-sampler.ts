import type { TrialId } from '../core/ids.ts';
import { at } from '../core/lists.ts';
import { samplerSeed } from '../core/random/seeded.ts';
import type { CallAnswer } from '../core/recordings/entry.ts';
import type { SampleRequest, SampleResult, TokenSampler } from '../services/gateway/index.ts';
import { type Ask, callKey, type PaidCalls } from './paid-calls.ts';

export type RecordedSamplerOptions = {
  readonly calls: PaidCalls;
  readonly trialId: TrialId;
  readonly who: 'student' | 'teacher';
  /** The weights' path, or the base model's name. */
  readonly model: string;
  /** Whether an answer can be given to the agent. */
  readonly isUsable: (result: SampleResult, request: SampleRequest) => boolean;
  /** Once aborted, no further call begins: it waits until its own signal ends it. */
  readonly drain: AbortSignal;
  /**
   * Ends calls under way. Nothing else does: a sample that was asked for is paid for, and whoever asked may have gone, but what it took
   * belongs into the book.
   */
  readonly signal: AbortSignal;
};

/** A sampler that can also wait for a sample that the service has taken before, by the name it has there. */
export type ResumingSampler = {
  readonly version: string;
  sample(request: SampleRequest & { readonly standing?: string }): Promise<SampleResult>;
};

/**
 * A sampler whose calls are in the trial's book. Each call is seeded by trial and call number: siblings differ, and a call that is made
 * again is offered the same sample.
 */
export function recordedSampler(sampler: ResumingSampler, options: RecordedSamplerOptions): TokenSampler {
  const { calls, trialId, who, model, isUsable, drain, signal } = options;
  const { version } = sampler;
  return {
    version,
    async sample(request) {
      if (drain.aborted) await held(request.signal);
      request.signal?.throwIfAborted();
      const { roomTokens, ...asked } = request;
      const { prompt, maxTokens, temperature, stopTokens } = asked;
      const key = callKey(prompt, { version, model, maxTokens: roomTokens ?? maxTokens, temperature, stopTokens });
      const order = { kind: 'sample', who, key, model, promptTokens: prompt.length, mostSampledTokens: maxTokens } as const;
      const ask: Ask = async (index, standing) => {
        const seed = samplerSeed(`${trialId} call ${index}`);
        const result = await sampler.sample({ ...asked, signal, seed, ...(standing === null ? {} : { standing }) });
        return sampleAnswer(result, isUsable(result, request));
      };
      return sampleIn(await calls.call(order, ask));
    },
  };
}

/** A sample as it is entered in a book. */
export function sampleAnswer(result: SampleResult, usable: boolean): CallAnswer {
  const { tokens, logprobs, stop, promptCacheHitTokens: cachedTokens, resubmissions = 0 } = result;
  const columns = [tokens, Float64Array.from(logprobs)];
  return { sampledTokens: tokens.length, cachedTokens, resubmissions, usable, detail: { stop }, columns };
}

/** The same, read. Log-probabilities are those that were entered, to the last bit. */
function sampleIn({ cachedTokens, detail, columns }: CallAnswer): SampleResult {
  const { stop } = detail as Pick<SampleResult, 'stop'>;
  const tokens = at(columns, 0) as Int32Array;
  return { tokens, logprobs: Float32Array.from(at(columns, 1)), stop, promptCacheHitTokens: cachedTokens };
}

function held(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal?.reason ?? new Error('the call was ended'));
    if (signal?.aborted) return end();
    signal?.addEventListener('abort', end, { once: true });
  });
}
