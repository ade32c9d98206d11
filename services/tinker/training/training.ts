import { BadRequest, SessionLost } from '../errors.ts';
import { promiseSchema, unloadAnswerSchema, unloadedSchema } from '../futures/answers.ts';
import { type Future, retrieveJson, submit } from '../futures/futures.ts';
import { refuseOtherKind, type SamplerPath, type StatePath } from '../paths.ts';
import type { Sampler } from '../sampling/sampler.ts';
import type { ForwardBackwardOutput, LossFnConfig, TrainingDatum } from '../wire/index.ts';
import { CallOrder } from './call-order.ts';
import { type ChunkPolicy, LossCall } from './loss-call.ts';
import { type OptimizerParams, wireOptimizerParams } from './optimizer.ts';
import { PendingCall, type SavedCall } from './pending-call.ts';
import { type EphemeralOptions, type ExternalOptions, type LoadOptions, type SaveOptions, wireSave } from './save-options.ts';
import { type LossRows, trainingDatum } from './training-datum.ts';
import {
  type CallKind,
  type CallResults,
  type OptimStepResult,
  REQUEST_TYPES,
  type ResultContext,
  type SavedExternal,
  updating,
} from './training-results.ts';

/** Sequences, shifted: as rows by name, or in full with the protocol's names. */
export type Batch = readonly (LossRows | TrainingDatum)[];
export type CallOptions = { readonly signal?: AbortSignal };
export type LossOptions = CallOptions & { readonly lossConfig?: LossFnConfig };

/** What a saved call holds of some kinds only. */
type Kept = Pick<SavedCall, 'targetCounts' | 'samplingSessionSeqId'>;

/** What a training client takes from the client that made it. */
export type TrainingContext = ResultContext & {
  readonly chunks: ChunkPolicy;
  /** The session's next number of a sampling session. */
  readonly takeSamplingSeqId: () => number;
};

/**
 * Trains one model. Calls take consecutive sequence numbers in the order in which they are made, a batch one per chunk;
 * the server runs them in that order and runs a repeated number once. So a caller that saved `nextSeqId` before a call
 * may make the very same call again after a crash, from a new client opened with that number.
 *
 * A call is sent once the submission before it was answered; it does not wait for that one's result. After a call that
 * failed or was aborted, later calls are not sent: they fail with the same error. Open another client with the saved number.
 *
 * Every call exists twice: `submit…` ends when the service has taken it and gives what is needed to wait for the result, now
 * or in another process; the plain name does both.
 */
export class TrainingClient {
  readonly modelId: string;
  readonly #context: TrainingContext;
  readonly #order: CallOrder;

  constructor(context: TrainingContext, modelId: string, nextSeqId: number) {
    if (!Number.isInteger(nextSeqId) || nextSeqId < 1) {
      throw new BadRequest(`nextSeqId is ${nextSeqId}; a new model starts at 1`, { call: 'training' });
    }
    this.modelId = modelId;
    this.#context = context;
    this.#order = new CallOrder(nextSeqId);
  }

  /** The number that the next call will take. A call takes its numbers at once, before anything is sent. */
  get nextSeqId(): number {
    return this.#order.nextSeqId;
  }

  /** Adds the batch's gradient to what has accumulated. Losses are summed over tokens; outputs come in the datums' order. */
  forwardBackward(datums: Batch, lossFn: string, options: LossOptions = {}): Promise<ForwardBackwardOutput> {
    return this.#whole(this.submitForwardBackward(datums, lossFn, options), options);
  }

  submitForwardBackward(datums: Batch, lossFn: string, options: LossOptions = {}): Promise<PendingCall<'forwardBackward'>> {
    return this.#submitLoss('forwardBackward', datums, lossFn, options);
  }

  /** The loss alone; the accumulated gradient stays as it is. */
  forward(datums: Batch, lossFn: string, options: LossOptions = {}): Promise<ForwardBackwardOutput> {
    return this.#whole(this.submitForward(datums, lossFn, options), options);
  }

  submitForward(datums: Batch, lossFn: string, options: LossOptions = {}): Promise<PendingCall<'forward'>> {
    return this.#submitLoss('forward', datums, lossFn, options);
  }

  /** One update from the accumulated gradient, which then starts over at zero. @throws TrainingStateUnknown when the service fails in it */
  optimStep(params: OptimizerParams, options: CallOptions = {}): Promise<OptimStepResult> {
    return this.#whole(this.submitOptimStep(params, options), options);
  }

  submitOptimStep(params: OptimizerParams, options: CallOptions = {}): Promise<PendingCall<'optimStep'>> {
    return this.#submit('optimStep', 'optim_step', wireOptimizerParams(params), options);
  }

  /** Saves weights and optimizer state. */
  saveState(name: string, options: SaveOptions & { readonly overwrite?: boolean } = {}): Promise<StatePath> {
    return this.#whole(this.submitSaveState(name, options), options);
  }

  submitSaveState(name: string, options: SaveOptions & { readonly overwrite?: boolean } = {}): Promise<PendingCall<'saveState'>> {
    return this.#submit('saveState', 'save_weights', { path: name, overwrite: options.overwrite ?? false, ...wireSave(options) }, options);
  }

  /** Saves the weights as they are now, to be sampled from. */
  saveForSampler(name: string, options: SaveOptions = {}): Promise<SamplerPath> {
    return this.#whole(this.submitSaveForSampler(name, options), options);
  }

  submitSaveForSampler(name: string, options: SaveOptions = {}): Promise<PendingCall<'saveForSampler'>> {
    const fields = { path: name, kind: 'snapshot', ...wireSave(options) };
    return this.#submit('saveForSampler', 'save_weights_for_sampler', fields, options);
  }

  /** A sampler of the weights as they are now, without a saved checkpoint: it ends with its session and cannot be opened again. */
  saveAndSample(options: EphemeralOptions = {}): Promise<Sampler> {
    return this.#whole(this.submitSaveAndSample(options), options);
  }

  submitSaveAndSample(options: EphemeralOptions = {}): Promise<PendingCall<'saveAndSample'>> {
    const seqId = options.samplingSessionSeqId ?? this.#context.takeSamplingSeqId();
    const fields = { sampling_session_seq_id: seqId, kind: options.kind ?? 'snapshot', ...wireSave(options) };
    return this.#submit('saveAndSample', 'save_weights_for_sampler', fields, options, { samplingSessionSeqId: seqId });
  }

  /** Saves the weights to be downloaded; see `checkpoints.externalWeightsUrls`. */
  saveExternal(name: string, options: ExternalOptions = {}): Promise<SavedExternal> {
    return this.#whole(this.submitSaveExternal(name, options), options);
  }

  submitSaveExternal(name: string, options: ExternalOptions = {}): Promise<PendingCall<'saveExternal'>> {
    const fields = { path: name, age_encryption_recipients: options.ageRecipients, ...wireSave(options) };
    return this.#submit('saveExternal', 'save_weights_external', fields, options);
  }

  /** Replaces the weights; with `optimizer` its moments too. Some services allow it only as a model's first call. */
  async loadState(path: StatePath, options: LoadOptions): Promise<void> {
    await this.#whole(this.submitLoadState(path, options), options);
  }

  async submitLoadState(path: StatePath, options: LoadOptions): Promise<PendingCall<'loadState'>> {
    refuseOtherKind(path, 'weights', 'loadState');
    if (options.weightsAccessToken !== undefined) this.#context.caller.credential.hide(options.weightsAccessToken);
    const fields = { path, optimizer: options.optimizer, weights_access_token: options.weightsAccessToken };
    return this.#submit('loadState', 'load_weights', fields, options);
  }

  /** To wait for a call that was submitted before, by this client or in another process. Nothing is sent until `result`. */
  resume<Kind extends CallKind>(saved: SavedCall<Kind>): PendingCall<Kind> {
    if (saved.modelId !== this.modelId) {
      throw new BadRequest(`the saved call is of model ${saved.modelId}, this is ${this.modelId}`, { call: 'resume' });
    }
    return new PendingCall(saved, null, this.#context, (error) => this.#order.fail(error));
  }

  /** Frees the model on the service; what it has saved stays. Later calls fail. */
  async unload({ signal }: CallOptions = {}): Promise<void> {
    const gone = new SessionLost('this client has unloaded the model', { call: 'unload_model' });
    const body = JSON.stringify({ model_id: this.modelId, type: 'unload_model' });
    const call = { method: 'POST', path: 'unload_model', body, phase: 'submit', subject: 'model', signal } as const;
    const { caller } = this.#context;
    const answer = await caller.json(call, unloadAnswerSchema);
    this.#order.end(gone);
    const promise = promiseSchema.safeParse(answer);
    if (!promise.success) return;
    const future = { requestId: promise.data.request_id, type: 'UnloadModel', subject: 'model' } as const;
    await retrieveJson(caller, future, unloadedSchema, signal);
  }

  /** For callers that do not keep what they submit: any failure ends this client. */
  async #whole<Kind extends CallKind>(pending: Promise<PendingCall<Kind>>, options: CallOptions): Promise<CallResults[Kind]> {
    const submitted = await pending;
    try {
      return await submitted.result(options);
    } catch (error) {
      this.#order.fail(error);
      throw error;
    }
  }

  async #submitLoss<Kind extends 'forward' | 'forwardBackward'>(
    kind: Kind,
    datums: Batch,
    lossFn: string,
    { lossConfig = {}, signal }: LossOptions,
  ): Promise<PendingCall<Kind>> {
    const order = { modelId: this.modelId, lossFn, lossFnConfig: lossConfig, forwardOnly: kind === 'forward', signal };
    const call = new LossCall(this.#context.caller, this.#context.chunks, datums.map(trainingDatum), order);
    const { targetCounts } = call;
    return this.#taken(kind, targetCounts.length, (seqId) => call.submit(seqId), { targetCounts });
  }

  #submit<Kind extends CallKind>(
    kind: Kind,
    path: string,
    fields: object,
    { signal }: CallOptions,
    kept: Kept = {},
  ): Promise<PendingCall<Kind>> {
    const send = async (seqId: number) => {
      const body = JSON.stringify({ model_id: this.modelId, seq_id: seqId, ...fields, type: path });
      const call = { method: 'POST', path, body, phase: 'submit', subject: 'model', signal } as const;
      const taken = () => submit(this.#context.caller, call, REQUEST_TYPES[kind], 'model');
      return [await (kind === 'optimStep' ? updating(taken) : taken())];
    };
    return this.#taken(kind, 1, send, kept);
  }

  async #taken<Kind extends CallKind>(
    kind: Kind,
    count: number,
    send: (firstSeqId: number) => Promise<readonly Future[]>,
    kept: Kept,
  ): Promise<PendingCall<Kind>> {
    const { nextSeqId: seqId } = this;
    const futures = await this.#order.submit(count, send);
    const requestIds = futures.map(({ requestId }) => requestId);
    const saved = { kind, modelId: this.modelId, seqId, requestIds, ...kept };
    return new PendingCall(saved, futures, this.#context, (error) => this.#order.fail(error));
  }
}
