import type { Chunk } from '../wire/index.ts';

/** Text as token ids, or text and images in order. */
export type Prompt = Int32Array | readonly Chunk[];

/** Token ids that end a sequence, or texts that do. An empty list: only the length ends it. Absent: the model's own end. */
export type Stop = readonly number[] | readonly string[] | string;

/** Token ids [positions, k], row-major; position i asks about what follows prompt[..i]. -1 asks for nothing. */
export type TargetTokens = { readonly tokenIds: Int32Array; readonly shape: readonly [positions: number, k: number] };

export type AsampleOptions = {
  readonly prompt: Prompt;
  readonly numSamples?: number | undefined;
  readonly maxTokens?: number | undefined;
  readonly temperature?: number | undefined;
  readonly topK?: number | undefined;
  readonly topP?: number | undefined;
  readonly stop?: Stop | undefined;
  readonly seed?: number | undefined;
  readonly includePromptLogprobs?: boolean | undefined;
  readonly topkPromptLogprobs?: number | undefined;
  readonly topkSampleLogprobs?: number | undefined;
  readonly targetPromptLogprobs?: TargetTokens | undefined;
  readonly promptAltTokensK?: number | undefined;
  readonly promptLogprobsLastN?: number | undefined;
  readonly recordStabilityInfo?: boolean | undefined;
};

/** The JSON of `asample`. Tokens are written by `join`: no array of boxed numbers is made for a long prompt. */
export function asampleBody(samplingSessionId: string, seqId: number, options: AsampleOptions): string {
  const rest = JSON.stringify({
    num_samples: options.numSamples ?? 1,
    sampling_params: {
      max_tokens: options.maxTokens,
      stop: options.stop,
      temperature: options.temperature ?? 1,
      top_k: options.topK ?? -1,
      top_p: options.topP ?? 1,
      seed: options.seed,
    },
    sampling_session_id: samplingSessionId,
    seq_id: seqId,
    prompt_logprobs: options.includePromptLogprobs ?? false,
    topk_prompt_logprobs: options.topkPromptLogprobs ?? 0,
    topk_sample_logprobs: options.topkSampleLogprobs ?? 0,
    prompt_alt_tokens_k: options.promptAltTokensK ?? 0,
    prompt_logprobs_last_n: options.promptLogprobsLastN,
    record_stability_info: options.recordStabilityInfo ?? false,
    type: 'sample',
  });
  return `{"prompt":{"chunks":[${chunksOf(options.prompt).map(chunkJson).join()}]},${targetsJson(options.targetPromptLogprobs)}${rest.slice(1)}`;
}

/** What a prompt weighs in the bytes that a client may have in dispatch at once: 10 per token of text, images as they are. */
export function promptBytes(prompt: Prompt): number {
  return chunksOf(prompt).reduce(
    (sum, chunk) => sum + (chunk.type === 'encoded_text' ? 10 * chunk.tokens.length : dataOf(chunk).length),
    0,
  );
}

/** Tokens of a prompt of text; null when its length is the service's to know. */
export function promptLength(prompt: Prompt): number | null {
  let length = 0;
  for (const chunk of chunksOf(prompt)) {
    if (chunk.type !== 'encoded_text') return null;
    length += chunk.tokens.length;
  }
  return length;
}

function chunksOf(prompt: Prompt): readonly Chunk[] {
  return prompt instanceof Int32Array ? [{ type: 'encoded_text', tokens: prompt }] : prompt;
}

function chunkJson(chunk: Chunk): string {
  if (chunk.type === 'encoded_text') return `{"tokens":[${chunk.tokens.join()}],"type":"encoded_text"}`;
  const data = Buffer.from(dataOf(chunk)).toString('base64');
  if (chunk.type === 'dmel') return JSON.stringify({ dmel: data, type: 'dmel' });
  return JSON.stringify({ data, format: chunk.format, expected_tokens: chunk.expectedTokens, type: 'image' });
}

function dataOf(chunk: Exclude<Chunk, { type: 'encoded_text' }>): Uint8Array {
  return chunk.type === 'image' ? chunk.data : chunk.dmel;
}

function targetsJson(targets: TargetTokens | undefined): string {
  if (targets === undefined) return '';
  return `"target_prompt_logprobs":{"data":[${targets.tokenIds.join()}],"dtype":"int64","shape":[${targets.shape.join()}]},`;
}
