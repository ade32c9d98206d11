/** Sizes of a Llama-shaped model (RMSNorm, RoPE, SwiGLU, head tied to the embedding). All widths are multiples of 4. */
export type ModelShape = {
  readonly vocab: number;
  readonly width: number;
  readonly layers: number;
  readonly heads: number;
  readonly hidden: number;
  /** Longest sequence in tokens, prompt and answer together. */
  readonly context: number;
};

/**
 * A complete dense model: a base model, or a base model with a LoRA adapter merged in.
 * `values` is the flat parameter vector in the order of `parameterTable(shape)`. Never write to it: engines keep copies keyed by this object.
 */
export type DenseWeights = {
  readonly shape: ModelShape;
  readonly values: Float32Array;
  /** Metadata of the safetensors file it came from; empty for merged weights. */
  readonly metadata: Readonly<Record<string, string>>;
};

/** A training sequence, already shifted: row i scores `targets[i]` after `tokens[0..i]`. All lists of one datum have one length. */
export type TokenRows = { readonly tokens: Int32Array; readonly targets: Int32Array };
/** With `columns` K (absent: 1) each row has K targets with a weight each: `targets` and `weights` hold [rows, K], row-major. */
export type WeightedRows = TokenRows & { readonly weights: Float32Array; readonly columns?: number };
export type PolicyRows = TokenRows & { readonly logprobs: Float32Array; readonly advantages: Float32Array };

/** Datums with the loss they are for. Values are sums over tokens, never normalised. */
export type LossBatch =
  | { readonly loss: 'cross_entropy'; readonly datums: readonly WeightedRows[] }
  | { readonly loss: 'importance_sampling'; readonly datums: readonly PolicyRows[] }
  | { readonly loss: 'ppo'; readonly datums: readonly PolicyRows[]; readonly clipLow: number; readonly clipHigh: number };

export type LossResult = {
  /** Per datum, ln p(targets[i]) in nats under the current weights; as many as there are targets. */
  readonly logprobs: readonly Float32Array[];
  readonly metrics: { readonly 'loss:sum': number };
};

/** Adam with decoupled weight decay; `gradClipNorm` 0 means no clipping. All fields are required on purpose. */
export type AdamSettings = {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  readonly gradClipNorm: number;
};

export type StepMetrics = { readonly gradNorm: number; readonly step: number };

export type LoraSettings = {
  readonly rank: number;
  readonly seed: number;
  /** Adapters on q, k, v, o. */
  readonly trainAttn: boolean;
  /** Adapters on gate, up, down. */
  readonly trainMlp: boolean;
};

export type DecodeRequest = {
  readonly weights: DenseWeights;
  /** At least one token. */
  readonly prompt: Int32Array;
  /** prompt.length + maxTokens must not exceed the context. */
  readonly maxTokens: number;
  /** 0 is greedy. */
  readonly temperature: number;
  readonly stopTokens: readonly number[];
  /** Same weights, prompt, settings and seed give the same tokens, whatever else is decoded at the same time. */
  readonly seed: number;
  readonly promptLogprobs: boolean;
  /** So many of the likeliest tokens per prompt position, at most `topkLimit(vocab)`; 0 for none. */
  readonly topkPromptLogprobs: number;
  /** Only the so many likeliest tokens are drawn from; absent for all. */
  readonly topK?: number;
  /** After topK, only the fewest likeliest tokens that together have this share of the probability; absent for all. */
  readonly topP?: number;
  /** The answer also ends behind any of these runs of tokens. */
  readonly stopSequences?: readonly (readonly number[])[];
  /** So many of the likeliest tokens per sampled position, at most `topkLimit(vocab)`; absent for none. */
  readonly topkSampledLogprobs?: number;
  readonly promptTargets?: PromptTargets;
  /** So many tokens are drawn, at this temperature, for every prompt position but the first; absent for none. */
  readonly promptAlternatives?: number;
};

/** Tokens to score at prompt positions: cell i asks for `ids[i]` (−1: nothing) at position `rows[i] + 1`. */
export type PromptTargets = { readonly rows: Int32Array; readonly ids: Int32Array };

export type DecodeResult = {
  /** A stop token that ended the sequence is the last of them. */
  readonly tokens: Int32Array;
  /** Nats, of the distribution sampled from: softmax(logits / temperature); plain softmax when greedy. */
  readonly logprobs: Float32Array;
  readonly stop: 'stop' | 'length';
  readonly promptCacheHitTokens: number;
  /** Length of the prompt, plain softmax; NaN at position 0. */
  readonly promptLogprobs: Float32Array | null;
  readonly topkPromptLogprobs: TopkLogprobs | null;
  /** Per sampled token, of the distribution that `logprobs` is of. */
  readonly topkSampledLogprobs: TopkLogprobs | null;
  /** One per cell of `promptTargets`, plain softmax; NaN where nothing was asked for. */
  readonly promptTargetLogprobs: Float32Array | null;
  /** Row i belongs to prompt position i + 1, in the order drawn; plain softmax. */
  readonly promptAlternatives: TopkLogprobs | null;
};

/** Row i (k entries, likeliest first, lower id first among equals; nats, plain softmax) belongs to prompt position i. Row 0 is all −1 ids and NaN. */
export type TopkLogprobs = { readonly k: number; readonly tokenIds: Int32Array; readonly logprobs: Float32Array };
