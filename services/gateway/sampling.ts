import { type GatewayError, SamplerBusy, SamplerOverflow, SamplerUnavailable, SamplerUnpaid, samplerFailure } from './errors.ts';
import type { ModelFailure, TrialRecorder } from './record.ts';
import { BadSampleError } from './sample-check.ts';
import type { SampleRequest, SampleResult, TokenSampler } from './token-sampler.ts';
import type { TrialOptions } from './trial-options.ts';

/** A trial's sampler, at the one version that it was opened with. What fails is noted in the record, and an answer for the agent. */
export class Sampling {
  /** Written into every span. */
  readonly version: string;
  readonly #sampler: TokenSampler;
  readonly #recorder: TrialRecorder;

  constructor({ sampler }: TrialOptions, recorder: TrialRecorder) {
    this.#sampler = sampler;
    this.version = sampler.version;
    this.#recorder = recorder;
  }

  /** @throws GatewayError; or the abort itself, when `signal` was aborted */
  async sample(request: SampleRequest & { readonly signal: AbortSignal }): Promise<SampleResult> {
    const { signal, prompt } = request;
    let result: SampleResult | undefined;
    try {
      signal.throwIfAborted();
      this.#refuseOtherVersion();
      result = await this.#sampler.sample(request);
      this.#refuseOtherVersion();
      return result;
    } catch (cause) {
      if (result) this.#recorder.waste(prompt.length, result.tokens.length);
      if (signal.aborted) throw cause;
      throw this.failed(cause);
    }
  }

  failed(cause: unknown): GatewayError {
    if (cause instanceof SamplerOverflow) this.#recorder.overflowed();
    else this.#recorder.failed(kindOf(cause), cause);
    return samplerFailure(cause);
  }

  /** Weights that arrive under an open trial may have sampled any part of an answer. */
  #refuseOtherVersion(): void {
    const { version } = this.#sampler;
    if (version === this.version) return;
    throw new BadSampleError(`the trial was opened with weights ${this.version}, but its sampler has ${version}: a trial has one version`);
  }
}

function kindOf(cause: unknown): ModelFailure['kind'] {
  if (cause instanceof SamplerBusy) return 'busy';
  if (cause instanceof SamplerUnpaid) return 'unpaid';
  if (cause instanceof BadSampleError) return 'bad_result';
  return cause instanceof SamplerUnavailable ? 'unavailable' : 'failed';
}
