import {
  type Chunk,
  type RestClient,
  type SampleAllRequest,
  type Sampler,
  samplerPath,
  statePath,
  type TinkerClient,
} from '../../../services/tinker/index.ts';
import { numbers, wholeSampleShape } from '../../tinker-drive/sdk-shape.ts';
import { runLossCall } from './drive-client.ts';
import type { Exchange } from './scripted-server.ts';

/** What a recorded request came from: the call of our public API with the arguments that its path, query and body name. */

/** Fields as recorded: they are handed on as they are, and our client's types are satisfied by whatever they hold. */
type Fields = { readonly [Name in FieldName]: never };
type FieldName =
  | 'adam_params'
  | 'age_encryption_recipients'
  | 'base_model'
  | 'beta1'
  | 'beta2'
  | 'chunks'
  | 'cursor'
  | 'data'
  | 'destination_project_id'
  | 'detail'
  | 'display_name'
  | 'dmel'
  | 'eps'
  | 'expected_tokens'
  | 'format'
  | 'grad_clip_norm'
  | 'kind'
  | 'learning_rate'
  | 'limit'
  | 'lora_config'
  | 'max_tokens'
  | 'model_id'
  | 'model_path'
  | 'model_seq_id'
  | 'num_samples'
  | 'optimizer'
  | 'optimizer_config'
  | 'optimizer_params'
  | 'overwrite'
  | 'path'
  | 'project_id'
  | 'prompt'
  | 'prompt_alt_tokens_k'
  | 'prompt_logprobs'
  | 'prompt_logprobs_last_n'
  | 'rank'
  | 'reason'
  | 'record_stability_info'
  | 'sampling_params'
  | 'seed'
  | 'seq_id'
  | 'session_id'
  | 'shape'
  | 'source_path'
  | 'stop'
  | 'target_prompt_logprobs'
  | 'temperature'
  | 'tinker_path'
  | 'tokens'
  | 'top_k'
  | 'top_p'
  | 'topk_prompt_logprobs'
  | 'topk_sample_logprobs'
  | 'train_attn'
  | 'train_mlp'
  | 'train_unembed'
  | 'ttl_seconds'
  | 'type'
  | 'user_metadata'
  | 'weight_decay'
  | 'weights_access_token';
export type Recorded = {
  readonly exchange: Exchange;
  readonly body: Fields;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** What the path's pattern caught. */
  readonly parts: readonly string[];
  /** The recorded caller named no option: all values of the body are defaults, which are ours to know. */
  readonly hasDefaults: boolean;
};
export type Clients = {
  /** The client of the session that the recording is from. */
  readonly client: TinkerClient;
  readonly rest: RestClient;
  /** A sampler of the recording's sampling session. */
  readonly sampler: () => Promise<Sampler>;
};

/** Undefined where our result does not hold what the recording's does. */
type Call = (clients: Clients, recorded: Recorded) => Promise<unknown>;

const CALLS: readonly (readonly [pattern: RegExp, call: Call])[] = [
  [/^POST create_model$/, async ({ client }, { body }) => (await client.createModel(modelOptions(body))).modelId],
  [/^POST get_info$/, ({ client }, { body }) => ignored(client.getInfo(body.model_id))],
  [/^POST forward_backward$/, ({ client }, { exchange }) => ignored(runLossCall(client, exchange))],
  [/^POST optim_step$/, async (clients, recorded) => (await training(clients, recorded.body).optimStep(optimizerParams(recorded))).metrics],
  [
    /^POST save_weights$/,
    (clients, { body }) => training(clients, body).saveState(body.path, { ...saving(body), overwrite: body.overwrite }),
  ],
  [/^POST save_weights_for_sampler$/, saveForSampler],
  [
    /^POST save_weights_external$/,
    async (clients, { body }) => {
      const options = given({ ageRecipients: body.age_encryption_recipients, ttlSeconds: body.ttl_seconds });
      return (await training(clients, body).saveExternal(body.path, options)).path;
    },
  ],
  [/^POST load_weights$/, loadWeights],
  [/^POST unload_model$/, ({ client }, { body }) => ignored(client.training(body.model_id, { nextSeqId: 1 }).unload())],
  [/^POST create_sampling_session$/, openSampler],
  [/^POST asample$/, sample],
  [/^GET samplers\/(.+)$/, async ({ rest }, { parts: [id] }) => (await rest.sampler(id ?? '')).baseModel],
  [/^POST sessions\/([^/]+)\/finish$/, ({ client }, { body }) => client.close(named(body.reason).type, body.detail)],
  [/^GET get_server_capabilities$/, async ({ rest }) => (await rest.capabilities()).supportedModels.length],
  [
    /^GET training_runs$/,
    async ({ rest }, { query }) => {
      const scope = given({ accessScope: query.access_scope as 'owned', projectId: query.project_id });
      return (await rest.trainingRuns.page({ ...paging(query), ...scope })).items.length;
    },
  ],
  [
    /^GET training_runs\/([^/]+)$/,
    async ({ rest }, { parts: [run], query }) =>
      (await rest.trainingRuns.get(run ?? '', given({ accessScope: query.access_scope as 'owned' }))).baseModel,
  ],
  [/^GET training_runs\/([^/]+)\/checkpoints$/, async ({ rest }, { parts: [run] }) => (await rest.checkpoints.list(run ?? '')).length],
  [/^GET checkpoints$/, async ({ rest }, { query }) => (await rest.checkpoints.page(paging(query))).items.length],
  [/^DELETE training_runs\/(.+)\/checkpoints\/([^/]+\/[^/]+)$/, ({ rest }, { parts }) => rest.checkpoints.delete(pathOf(parts))],
  [
    /^POST training_runs\/(.+)\/checkpoints\/([^/]+\/[^/]+)\/publish$/,
    ({ rest }, { parts }) => ignored(rest.checkpoints.publish(pathOf(parts))),
  ],
  [
    /^DELETE training_runs\/(.+)\/checkpoints\/([^/]+\/[^/]+)\/publish$/,
    ({ rest }, { parts }) => ignored(rest.checkpoints.unpublish(pathOf(parts))),
  ],
  [
    /^PUT training_runs\/(.+)\/checkpoints\/([^/]+\/[^/]+)\/ttl$/,
    ({ rest }, { parts, body }) => ignored(rest.checkpoints.setTtl(pathOf(parts), body.ttl_seconds)),
  ],
  [
    /^GET training_runs\/(.+)\/checkpoints\/([^/]+\/[^/]+)\/external_weights_urls$/,
    async ({ rest }, { parts }) => (await rest.checkpoints.externalWeightsUrls(pathOf(parts))).urls,
  ],
  [/^POST weights_info$/, async ({ rest }, { body }) => (await rest.weights.info(statePath(body.tinker_path))).loraRank],
  [/^POST copy_weights$/, copyWeights],
  [
    /^GET sessions\/([^/]+)$/,
    async ({ rest }, { parts: [id], query }) =>
      (await rest.sessions.get(id ?? '', given({ accessScope: query.access_scope as 'owned' }))).samplerIds,
  ],
  [
    /^GET sessions$/,
    ({ rest }, { query }) => rest.sessions.page({ ...paging(query), ...given({ accessScope: query.access_scope as 'owned' }) }),
  ],
  [
    /^POST sessions\/search$/,
    async ({ rest }, { body }) => {
      const { user_metadata, display_name, limit, cursor } = body;
      return (await rest.sessions.search(given({ userMetadata: user_metadata, displayName: display_name, limit, cursor }))).sessions;
    },
  ],
  [/^PUT sessions\/([^/]+)\/project$/, ({ rest }, { parts: [id], body }) => rest.sessions.assignProject(id ?? '', body.project_id)],
  [
    /^GET billing\/usage\/events$/,
    async ({ rest }, { query }) => {
      const window = { startingOn: new Date(query.starting_on ?? ''), endingBefore: new Date(query.ending_before ?? '') };
      return (await rest.billing.usage(window)).events.length;
    },
  ],
  [
    /^GET billing\/usage\/checkpoints\/current$/,
    async ({ rest }, { query }) => (await rest.billing.checkpointStorage(given({ projectId: query.project_id }))).entries.length,
  ],
  [/^GET audit$/, async ({ rest }, { query }) => (await rest.auditLog(given({ eventType: query.event_type, day: query.day }))).length],
];

/** Null when our client has no such call. `sdkCall`: the source text of the recorded caller's call. */
export function callOf(exchange: Exchange, sdkCall = ''): ((clients: Clients) => Promise<unknown>) | null {
  const { method, path, query, req, req_headers } = exchange;
  const hasDefaults = /Params\(\)/.test(sdkCall);
  const name = `${method} ${path.replace('/api/v1/', '')}`;
  for (const [pattern, call] of CALLS) {
    const match = pattern.exec(name);
    if (match === null) continue;
    const parts = match.slice(1);
    const fields = { body: (req ?? {}) as Fields, query: Object.fromEntries(new URLSearchParams(query)), headers: req_headers };
    return (clients) => call(clients, { exchange, parts, hasDefaults, ...fields });
  }
  return null;
}

function modelOptions(body: Fields) {
  const lora = named(body.lora_config);
  const more = { seed: lora.seed, trainMlp: lora.train_mlp, trainAttn: lora.train_attn, trainUnembed: lora.train_unembed };
  const optimizerType = named(body.optimizer_config).type;
  const options = given({ ...more, optimizerType, userMetadata: body.user_metadata, modelSeqId: body.model_seq_id });
  return { baseModel: body.base_model, rank: lora.rank, ...options };
}

function optimizerParams({ body, hasDefaults }: Recorded) {
  const { learning_rate, beta1, beta2, eps, weight_decay, grad_clip_norm, type } = named(body.adam_params ?? body.optimizer_params);
  // Of the official client's defaults the learning rate is the one that ours does not have.
  if (hasDefaults) return { learningRate: 1e-4 };
  const more = given({ beta1, beta2, eps, weightDecay: weight_decay, gradClipNorm: grad_clip_norm });
  return { learningRate: learning_rate, ...more, ...given({ optimizer: type }) };
}

async function saveForSampler(clients: Clients, { body }: Recorded): Promise<unknown> {
  const model = training(clients, body);
  if (body.path !== undefined) return model.saveForSampler(body.path, saving(body));
  return ignored(model.saveAndSample({ ...saving(body), kind: body.kind }));
}

async function loadWeights(clients: Clients, { body }: Recorded): Promise<unknown> {
  const options = { optimizer: body.optimizer, ...given({ weightsAccessToken: body.weights_access_token }) };
  const path = statePath(body.path);
  if (body.model_id !== undefined) return training(clients, body).loadState(path, options);
  const more = given({ baseModel: body.base_model, userMetadata: body.user_metadata, modelSeqId: body.model_seq_id });
  return (await clients.client.createModelFromState(path, { ...options, ...more })).modelId;
}

async function openSampler({ client }: Clients, { body }: Recorded): Promise<unknown> {
  const source = body.base_model === undefined ? { samplerPath: samplerPath(body.model_path) } : { baseModel: body.base_model };
  return (await client.sampler(source)).version;
}

async function copyWeights({ rest }: Clients, { body, headers }: Recorded): Promise<unknown> {
  const model = body.session_id === undefined ? undefined : { sessionId: body.session_id, modelSeqId: body.model_seq_id };
  const weightsAccessToken = headers['x-tinker-weights-access-token'];
  const options = given({ projectId: body.destination_project_id, model, ttlSeconds: body.ttl_seconds, weightsAccessToken });
  return rest.weights.copy(statePath(body.source_path), options);
}

async function sample({ sampler }: Clients, { body, headers, hasDefaults }: Recorded): Promise<unknown> {
  const opened = await sampler();
  const request = hasDefaults ? { prompt: promptOf(named(body.prompt).chunks) } : sampleRequest(body);
  if (headers['x-sdk-method']?.endsWith('.compute_logprobs')) {
    if (!(request.prompt instanceof Int32Array)) throw new Error('scores of a prompt that is not text');
    const lastN = sampleRequest(body).promptLogprobsLastN;
    return numbers((await opened.promptLogprobs(request.prompt, given({ lastN }))).logprobs);
  }
  return wholeSampleShape(await opened.sampleAll(request));
}

function sampleRequest(body: Fields): SampleAllRequest {
  const params = named(body.sampling_params);
  const target = body.target_prompt_logprobs as Fields | undefined;
  const options = given({
    numSamples: body.num_samples,
    maxTokens: params.max_tokens,
    temperature: params.temperature,
    topK: params.top_k,
    topP: params.top_p,
    stop: params.stop,
    seed: params.seed,
    includePromptLogprobs: body.prompt_logprobs,
    topkPromptLogprobs: body.topk_prompt_logprobs,
    topkSampleLogprobs: body.topk_sample_logprobs,
    promptAltTokensK: body.prompt_alt_tokens_k,
    promptLogprobsLastN: body.prompt_logprobs_last_n,
    recordStabilityInfo: body.record_stability_info,
    targetPromptLogprobs: target && { tokenIds: Int32Array.from(target.data as number[]), shape: target.shape },
  });
  return { prompt: promptOf(named(body.prompt).chunks), ...options };
}

function promptOf(chunks: readonly (Omit<Fields, 'type'> & { readonly type: string })[]): SampleAllRequest['prompt'] {
  const [only] = chunks;
  if (chunks.length === 1 && only?.type === 'encoded_text') return Int32Array.from(only.tokens as number[]);
  return chunks.map((chunk): Chunk => {
    if (chunk.type === 'encoded_text') return { type: 'encoded_text', tokens: Int32Array.from(chunk.tokens as number[]) };
    if (chunk.type === 'dmel') return { type: 'dmel', dmel: Buffer.from(chunk.dmel, 'base64') };
    return {
      type: 'image',
      data: Buffer.from(chunk.data, 'base64'),
      format: chunk.format,
      ...given({ expectedTokens: chunk.expected_tokens }),
    };
  });
}

const training = ({ client }: Clients, body: Fields) => client.training(body.model_id, { nextSeqId: body.seq_id });
const saving = (body: Fields) => given({ ttlSeconds: body.ttl_seconds, userMetadata: body.user_metadata });
const paging = (query: Recorded['query']) => given({ limit: numeric(query.limit), offset: numeric(query.offset) });
const numeric = (text: string | undefined) => (text === undefined ? undefined : Number(text));
const pathOf = ([run, id]: readonly string[]) => `tinker://${run}/${id}` as never;
const named = (value: unknown) => value as Fields;
const ignored = (call: Promise<unknown>): Promise<undefined> => call.then(() => undefined);

type Given<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };
/** The fields that have a value. */
export function given<T extends object>(fields: T): Given<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Given<T>;
}
