/** What one sampling call asks for. `prompt` is the full prompt in token ids. */
export type SampleRequest = {
  readonly prompt: Int32Array;
  readonly maxTokens: number;
  /** The same, were it not for what the trial may still cost: the same call of another attempt has the same. Absent: `maxTokens`. */
  readonly roomTokens?: number;
  readonly temperature: number;
  readonly stopTokens: readonly number[];
  readonly seed?: number;
  readonly signal?: AbortSignal;
};

/** `logprobs` has the length of `tokens` (nats); a stop token that ended the sequence is part of both. */
export type SampleResult = {
  readonly tokens: Int32Array;
  readonly logprobs: Float32Array;
  readonly stop: 'stop' | 'length';
  readonly promptCacheHitTokens: number;
  /** How often the call was submitted before, in vain. Absent: never. */
  readonly resubmissions?: number;
};

/**
 * Weights that can be sampled, handed to the gateway by the worker. `version` is written into every span it makes.
 * `sample` fails with `SamplerBusy` when the agent should come back later, with `SamplerUnavailable` when the model cannot be
 * reached (both in errors.ts), with anything else when it is broken; it stops early when `signal` aborts.
 */
export interface TokenSampler {
  readonly version: string;
  sample(request: SampleRequest): Promise<SampleResult>;
}
