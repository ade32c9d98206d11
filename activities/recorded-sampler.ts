import type { TrialId } from '../core/ids.ts';
import { at } from '../core/lists.ts';
import { samplerSeed } from '../core/random/seeded.ts';
import type { CallAnswer } from '../core/recordings/entry.ts';
import type { SampleRequest, SampleResult, TokenSampler } from '../services/gateway/index.ts';
import { TinkerError } from '../services/tinker/index.ts';
import { callKey, type PaidCalls } from './paid-calls.ts';

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
};

/**
 * A sampler whose calls are in the trial's book. Each call is seeded by trial and call number: siblings differ, and a call that is made
 * again is offered the same sample.
 */
export function recordedSampler(sampler: TokenSampler, options: RecordedSamplerOptions): TokenSampler {
  const { calls, trialId, who, model, isUsable, drain } = options;
  const { version } = sampler;
  return {
    version,
    async sample(request) {
      if (drain.aborted) await held(request.signal);
      const { prompt, maxTokens, temperature, stopTokens } = request;
      const key = callKey(prompt, { version, model, maxTokens, temperature, stopTokens });
      const order = { kind: 'sample', who, key, model, promptTokens: prompt.length, mostSampledTokens: maxTokens } as const;
      const ask = async (index: number) => {
        const result = await sampler.sample({ ...request, seed: samplerSeed(`${trialId} call ${index}`) });
        return sampleAnswer(result, isUsable(result, request));
      };
      return sampleIn(await calls.call(order, ask, neverSent));
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

/** Statuses of a submission that the service refused before it sampled anything: it is wrong, unpaid, one too many, or of a lost session. */
const REFUSED = new Set([400, 401, 402, 403, 404, 410, 413, 422, 429]);

/** Of any other failure nobody knows whether the service did the work. */
export function neverSent(error: unknown): boolean {
  return error instanceof TinkerError && error.call === 'asample' && error.status !== null && REFUSED.has(error.status);
}

function held(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => {
    const end = () => reject(signal?.reason ?? new Error('the call was ended'));
    if (signal?.aborted) return end();
    signal?.addEventListener('abort', end, { once: true });
  });
}
