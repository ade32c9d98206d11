import { BadRequest } from '../errors.ts';
import { createdModelSchema, loadedSchema, modelInfoSchema } from '../futures/answers.ts';
import { retrieveJson, submit } from '../futures/futures.ts';
import type { Caller } from '../http/caller.ts';
import { refuseOtherKind, type StatePath } from '../paths.ts';
import { ifSupported } from '../rest/request.ts';
import type { Weights, WeightsInfo } from '../rest/weights.ts';
import { type OptimizerType, wireOptimizerConfig } from './optimizer.ts';

/** A LoRA to train. The `train…` switches are the protocol's, all on by default. */
export type ModelOptions = {
  readonly baseModel: string;
  readonly rank: number;
  /** Of the initial weights; absent = the service draws one. */
  readonly seed?: number;
  readonly trainMlp?: boolean;
  readonly trainAttn?: boolean;
  readonly trainUnembed?: boolean;
  /** Default adamw. */
  readonly optimizerType?: OptimizerType;
  readonly userMetadata?: Readonly<Record<string, string>>;
  /** Number of the model in its session. Give a saved one to repeat a creation after a crash; absent = the client's next. */
  readonly modelSeqId?: number;
  readonly signal?: AbortSignal;
};

/**
 * What is left out is as in the saved model. `rank` and the `train…` switches are needed only where a server does not tell them
 * (`weights_info`); they must be the saved model's. There is no seed: the initial weights are the saved ones.
 */
export type FromStateOptions = Partial<Omit<ModelOptions, 'seed'>> & {
  /** Restore the optimizer's moments too. */
  readonly optimizer: boolean;
  /** For state that another account shared. */
  readonly weightsAccessToken?: string;
};

export type CreatedModel = {
  readonly modelId: string;
  /** With which number its training goes on. */
  readonly nextSeqId: number;
};

export type ModelInfo = {
  readonly modelId: string;
  readonly baseModel: string | null;
  readonly arch: string | null;
  readonly tokenizerId: string | null;
  readonly isLora: boolean | null;
  readonly loraRank: number | null;
  /** E.g. adamw. */
  readonly optimizerType: string | null;
};

export async function createModel(caller: Caller, sessionId: string, modelSeqId: number, options: ModelOptions): Promise<CreatedModel> {
  const body = JSON.stringify({
    session_id: sessionId,
    model_seq_id: modelSeqId,
    base_model: options.baseModel,
    user_metadata: options.userMetadata,
    lora_config: {
      rank: options.rank,
      seed: options.seed,
      train_unembed: options.trainUnembed ?? true,
      train_mlp: options.trainMlp ?? true,
      train_attn: options.trainAttn ?? true,
    },
    optimizer_config: wireOptimizerConfig(options.optimizerType ?? 'adamw'),
    type: 'create_model',
  });
  const { signal } = options;
  const call = { method: 'POST', path: 'create_model', body, phase: 'submit', subject: 'session', signal } as const;
  const future = await submit(caller, call, 'CreateModel', 'session');
  const { model_id } = await retrieveJson(caller, future, createdModelSchema, signal);
  return { modelId: model_id, nextSeqId: 1 };
}

/**
 * A model that starts from saved state, made in one call where the service has it, else as a fresh model whose first
 * call loads the state. @throws BadRequest when the state is unknown, or is of another rank or other switches than given
 */
export async function createModelFromState(
  caller: Caller,
  weights: Weights,
  sessionId: string,
  modelSeqId: number,
  path: StatePath,
  options: FromStateOptions,
): Promise<CreatedModel> {
  refuseOtherKind(path, 'weights', 'createModelFromState');
  const { optimizer, weightsAccessToken, optimizerType, signal } = options;
  if (weightsAccessToken !== undefined) caller.credential.hide(weightsAccessToken);
  // The one call cannot carry them.
  if (SHAPE.some((field) => options[field] !== undefined)) requireSameShape(path, await ifSupported(weights.info(path)), options);
  const load = { path, optimizer, weights_access_token: weightsAccessToken, type: 'load_weights' };
  const body = JSON.stringify({
    session_id: sessionId,
    model_seq_id: modelSeqId,
    base_model: options.baseModel,
    user_metadata: options.userMetadata,
    optimizer_config: optimizerType && wireOptimizerConfig(optimizerType),
    ...load,
  });
  try {
    const future = await submit(caller, loadCall(body, signal), 'LoadWeights', 'session');
    const { model_id } = await retrieveJson(caller, future, loadedSchema, signal);
    return { modelId: model_id ?? `${sessionId}:train:${modelSeqId}`, nextSeqId: 1 };
  } catch (error) {
    // 422: the server knows only the older form, which names a model.
    if (!(error instanceof BadRequest) || error.status !== 422) throw error;
  }
  const { modelId, nextSeqId } = await createModel(caller, sessionId, modelSeqId, await asSaved(weights, path, options));
  const older = JSON.stringify({ model_id: modelId, seq_id: nextSeqId, ...load });
  const future = await submit(caller, loadCall(older, signal), 'LoadWeights', 'model');
  await retrieveJson(caller, future, loadedSchema, signal);
  return { modelId, nextSeqId: nextSeqId + 1 };
}

const SHAPE = ['rank', 'trainMlp', 'trainAttn', 'trainUnembed'] as const;
type Shape = { readonly [Field in (typeof SHAPE)[number]]?: number | boolean | null };

/** @throws BadRequest naming the option that the saved model has otherwise */
function requireSameShape(path: StatePath, saved: WeightsInfo | null, given: FromStateOptions): void {
  if (saved === null) return;
  const shape: Shape = { ...saved, rank: saved.loraRank };
  for (const field of SHAPE) {
    const [wanted, kept] = [given[field], shape[field] ?? null];
    if (wanted === undefined || kept === null || wanted === kept) continue;
    throw new BadRequest(`${field} is ${wanted}, but ${kept} in ${path}: leave it out`, { call: 'load_weights' });
  }
}

/**
 * The options of a fresh model that saved state fits into: the service is asked for what the caller leaves out. What it does not say
 * is the protocol's default.
 */
async function asSaved(weights: Weights, path: StatePath, options: FromStateOptions): Promise<ModelOptions> {
  const saved = await ifSupported(weights.info(path));
  const rank = options.rank ?? saved?.loraRank ?? null;
  const baseModel = options.baseModel ?? saved?.baseModel ?? null;
  if (rank === null || baseModel === null)
    throw new BadRequest(`the service does not say the rank of ${path}: give baseModel and rank`, { call: 'create_model' });
  const { trainMlp = null, trainAttn = null, trainUnembed = null, optimizerType = null } = saved ?? {};
  const asKept: Partial<ModelOptions> = {
    ...(trainMlp === null ? {} : { trainMlp }),
    ...(trainAttn === null ? {} : { trainAttn }),
    ...(trainUnembed === null ? {} : { trainUnembed }),
    ...(optimizerType === 'adamw' || optimizerType === 'dimuon' ? { optimizerType } : {}),
  };
  return { ...asKept, ...options, baseModel, rank };
}

export async function getInfo(caller: Caller, modelId: string): Promise<ModelInfo> {
  const body = JSON.stringify({ model_id: modelId, type: 'get_info' });
  const info = await caller.json({ method: 'POST', path: 'get_info', body, phase: 'submit', subject: 'model' }, modelInfoSchema);
  const { arch, model_name, tokenizer_id } = info.model_data;
  return {
    modelId,
    baseModel: model_name ?? info.model_name ?? null,
    arch: arch ?? null,
    // The part after the ":" is a revision.
    tokenizerId: tokenizer_id?.split(':')[0] ?? null,
    isLora: info.is_lora ?? null,
    loraRank: info.lora_rank ?? null,
    optimizerType: info.optimizer_config?.type ?? null,
  };
}

function loadCall(body: string, signal: AbortSignal | undefined) {
  return { method: 'POST', path: 'load_weights', body, phase: 'submit', subject: 'session', signal } as const;
}
