import type { TrialId } from '../ids.ts';

/**
 * One model call of a trial, exactly as it was sampled.
 * `prompt` and `sampled` are token ids; `sampled` ends with the stop token when one was emitted.
 * `logprobs[i]` is ln p(sampled[i] | prompt, sampled[..i]) in nats; NaN marks a token whose log-probability was unusable (it gets no loss).
 */
export type Span = {
  readonly callIndex: number;
  readonly prompt: Int32Array;
  readonly sampled: Int32Array;
  readonly logprobs: Float64Array;
  readonly stop: 'stop' | 'length';
  /** Name of the weights that sampled: `step-NNNN`, or the base model's name. */
  readonly sampler: string;
};

/** A trial seen as tokens: its calls in order. */
export type Episode = {
  readonly trial: TrialId;
  readonly spans: readonly Span[];
  /** why the agent stopped, e.g. `context_overflow`; null when nothing says. */
  readonly stopReason: string | null;
};

/**
 * One training sequence, unshifted. All lists have one length n.
 * `mask[i]` is 1 where the token was sampled (it carries loss) and 0 for context; `logprobs` is 0 at context.
 */
export type Datum = {
  readonly trial: TrialId;
  /** 0 for the main sequence; a prompt that does not extend the last one opens the next fragment. */
  readonly fragment: number;
  readonly tokens: Int32Array;
  readonly mask: Uint8Array;
  readonly logprobs: Float64Array;
};
