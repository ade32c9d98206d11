export type AsampleOptions = {
  readonly prompt: Int32Array;
  readonly maxTokens: number;
  readonly temperature: number;
  /** Null: the model's own end. */
  readonly stopTokens: readonly number[] | null;
  readonly seed: number | undefined;
  readonly promptLogprobs: boolean;
  /** 0 asks for none. */
  readonly topkPrompt: number;
};

/** The JSON of `asample`. The prompt is written by `join`: no array of boxed numbers is made for it. */
export function asampleBody(samplingSessionId: string, seqId: number, options: AsampleOptions): string {
  const { prompt, maxTokens, temperature, stopTokens, seed, promptLogprobs, topkPrompt } = options;
  const rest = JSON.stringify({
    num_samples: 1,
    sampling_params: {
      max_tokens: maxTokens,
      ...(seed === undefined ? {} : { seed }),
      ...(stopTokens === null ? {} : { stop: stopTokens }),
      temperature,
      top_k: -1,
      top_p: 1,
    },
    sampling_session_id: samplingSessionId,
    seq_id: seqId,
    prompt_logprobs: promptLogprobs,
    topk_prompt_logprobs: topkPrompt,
    topk_sample_logprobs: 0,
    prompt_alt_tokens_k: 0,
    record_stability_info: false,
    type: 'sample',
  });
  return `{"prompt":{"chunks":[{"tokens":[${prompt.join()}],"type":"encoded_text"}]},${rest.slice(1)}`;
}

/** What a prompt weighs in the bytes that a client may have in dispatch at once: 10 per token. */
export function promptBytes(prompt: Int32Array): number {
  return 10 * prompt.length;
}
