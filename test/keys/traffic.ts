import { decodeForwardBackwardRequest, type ReceivedForwardBackwardRequest } from '../../services/tinker/wire/index.ts';
import type { Exchange } from '../support/altering-proxy.ts';

/** One call for a sample or for scores, as the trainer got it. */
export type SampleCall = {
  /** The base model's name, or the path of the weights. */
  readonly weights: string;
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly temperature: number;
  readonly stop: readonly number[] | null;
  /** True when the prompt's own log-probabilities are asked for: a score. */
  readonly scores: boolean;
  readonly topk: number;
};

export type CreatedModel = { readonly baseModel: string; readonly rank: number };

/** What a run asks of the training service, call by call. */
export class Traffic {
  readonly models: CreatedModel[] = [];
  readonly losses: ReceivedForwardBackwardRequest[] = [];
  /** Forward passes without a gradient: the small sequences by which saved weights are known again. */
  readonly probes: ReceivedForwardBackwardRequest[] = [];
  readonly learningRates: number[] = [];
  readonly samples: SampleCall[] = [];
  /** Names of saved training states and of weights published for sampling. */
  readonly states: string[] = [];
  readonly samplers: string[] = [];
  readonly #weightsOf: Map<string, string>;

  /** `weightsOf`: the weights of each sampling session, which outlives the run that opened it. */
  constructor(weightsOf: Map<string, string>) {
    this.#weightsOf = weightsOf;
  }

  /** Advantages of every training sequence, context included (where they are 0). */
  get advantages(): number[] {
    return this.losses.flatMap(({ datums }) => datums.flatMap((datum) => [...(datum.lossFnInputs.advantages?.values ?? [])].map(Number)));
  }

  /** Lengths of every training sequence, in tokens: what is sent is shifted by one. */
  get sequenceTokens(): number[] {
    return tokensIn(this.losses);
  }

  get probeTokens(): number {
    return tokensIn(this.probes).reduce((sum, tokens) => sum + tokens, 0);
  }

  private hearLoss(request: ReceivedForwardBackwardRequest): void {
    (request.forwardOnly ? this.probes : this.losses).push(request);
  }

  hear({ path, body, answer }: Exchange): void {
    if (path === 'forward_backward') this.hearLoss(decodeForwardBackwardRequest(body));
    if (!(path in LISTENERS)) return;
    const asked = JSON.parse(body.toString()) as Json;
    if (path === 'create_sampling_session') {
      const told = JSON.parse(Buffer.from(answer).toString()) as Json;
      this.#weightsOf.set(String(told.sampling_session_id), String(asked.model_path ?? asked.base_model));
    }
    LISTENERS[path as keyof typeof LISTENERS](this, asked, this.#weightsOf);
  }
}

const tokensIn = (requests: readonly ReceivedForwardBackwardRequest[]): number[] =>
  requests.flatMap(({ datums }) => datums.map((datum) => (datum.lossFnInputs.target_tokens?.values.length ?? 0) + 1));

type Json = Record<string, unknown>;

const LISTENERS = {
  create_sampling_session: () => {},
  create_model: ({ models }: Traffic, asked: Json) =>
    void models.push({ baseModel: String(asked.base_model), rank: (asked.lora_config as { rank: number }).rank }),
  optim_step: ({ learningRates }: Traffic, asked: Json) =>
    void learningRates.push((asked.adam_params as { learning_rate: number }).learning_rate),
  save_weights: ({ states }: Traffic, asked: Json) => void states.push(String(asked.path)),
  save_weights_for_sampler: ({ samplers }: Traffic, asked: Json) => void samplers.push(String(asked.path)),
  asample: ({ samples }: Traffic, asked: Json, weightsOf: ReadonlyMap<string, string>) =>
    void samples.push(sampleCall(asked, weightsOf.get(String(asked.sampling_session_id)) ?? 'unknown')),
};

function sampleCall(asked: Json, weights: string): SampleCall {
  const params = asked.sampling_params as { max_tokens: number; temperature: number; stop?: readonly number[] };
  const { chunks } = asked.prompt as { chunks: readonly { tokens: readonly number[] }[] };
  return {
    weights,
    prompt: chunks.flatMap(({ tokens }) => tokens),
    maxTokens: params.max_tokens,
    temperature: params.temperature,
    stop: params.stop ?? null,
    scores: asked.prompt_logprobs === true,
    topk: Number(asked.topk_prompt_logprobs),
  };
}
