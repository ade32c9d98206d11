import type { SamplerPath, StatePath } from '../../core/ids.ts';
import { loadedSchema, optimStepSchema, savedSchema } from './answers.ts';
import { CallOrder } from './call-order.ts';
import type { Caller } from './caller.ts';
import { BadRequest, ServiceFailed, TrainingStateUnknown } from './errors.ts';
import { type Future, type RequestType, retrieveJson, submit } from './futures.ts';
import { type ChunkPolicy, LossCall } from './loss-call.ts';
import { type LossRows, trainingDatum } from './training-datum.ts';
import type { ForwardBackwardOutput, LossFnConfig, TrainingDatum } from './wire/index.ts';

/** Sequences, shifted: as rows by name, or in full with the protocol's names. */
export type Batch = readonly (LossRows | TrainingDatum)[];
export type CallOptions = { readonly signal?: AbortSignal };
export type LossOptions = CallOptions & { readonly lossConfig?: LossFnConfig };
export type SaveOptions = CallOptions & {
  /** 3600 .. 10 years; absent = kept for good. */
  readonly ttlSeconds?: number;
};

/** The fields other than the rate have the protocol's defaults. */
export type AdamParams = {
  readonly learningRate: number;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Default 0.95. */
  readonly beta2?: number;
  /** Default 1e-12. */
  readonly eps?: number;
  /** Decoupled. Default 0. */
  readonly weightDecay?: number;
  /** Largest gradient norm; 0 (default) = no clipping. */
  readonly gradClipNorm?: number;
};

/**
 * Trains one model. Calls take consecutive sequence numbers in the order in which they are made, a batch one per chunk;
 * the server runs them in that order and runs a repeated number once. So a caller that saved `nextSeqId` before a call
 * may make the very same call again after a crash, from a new client opened with that number.
 *
 * A call is sent once the submission before it was answered; it does not wait for that one's result. After a call that
 * failed or was aborted, later calls fail with the same error: open another client with the saved number.
 */
export class TrainingClient {
  readonly modelId: string;
  readonly #caller: Caller;
  readonly #chunks: ChunkPolicy;
  readonly #order: CallOrder;

  constructor(caller: Caller, modelId: string, nextSeqId: number, chunks: ChunkPolicy) {
    if (!Number.isInteger(nextSeqId) || nextSeqId < 1) {
      throw new BadRequest(`nextSeqId is ${nextSeqId}; a new model starts at 1`, { call: 'training' });
    }
    this.modelId = modelId;
    this.#caller = caller;
    this.#chunks = chunks;
    this.#order = new CallOrder(nextSeqId);
  }

  /** The number that the next call will take. A call takes its numbers at once, before anything is sent. */
  get nextSeqId(): number {
    return this.#order.nextSeqId;
  }

  /** Adds the batch's gradient to what has accumulated. Losses are summed over tokens; outputs come in the datums' order. */
  forwardBackward(datums: Batch, lossFn: string, options: LossOptions = {}): Promise<ForwardBackwardOutput> {
    return this.#loss(datums, lossFn, options, false);
  }

  /** The loss alone; the accumulated gradient stays as it is. */
  forward(datums: Batch, lossFn: string, options: LossOptions = {}): Promise<ForwardBackwardOutput> {
    return this.#loss(datums, lossFn, options, true);
  }

  /** One AdamW update from the accumulated gradient, which then starts over at zero. @throws TrainingStateUnknown when the service fails in it */
  async optimStep(adam: AdamParams, { signal }: CallOptions = {}): Promise<{ metrics: Readonly<Record<string, number>> }> {
    const fields = { adam_params: wireAdam(adam) };
    return this.#order.run(
      1,
      (seqId) => this.#submit('optim_step', 'OptimStep', seqId, fields, signal),
      async (future) => {
        try {
          return { metrics: (await retrieveJson(this.#caller, future, optimStepSchema, signal)).metrics ?? {} };
        } catch (error) {
          if (!(error instanceof ServiceFailed)) throw error;
          const message = `the update may or may not have been made (${error.message}); rebuild the model from its last saved state`;
          throw new TrainingStateUnknown(message, { call: 'optim_step', requestId: error.requestId, cause: error });
        }
      },
    );
  }

  /** Saves weights and optimizer state. */
  async saveState(name: string, options: SaveOptions & { readonly overwrite?: boolean } = {}): Promise<StatePath> {
    const fields = { path: name, ...ttl(options), overwrite: options.overwrite ?? false };
    return (await this.#save('save_weights', 'SaveWeights', fields, options.signal)) as StatePath;
  }

  /** Saves the weights as they are now, to be sampled from. */
  async saveForSampler(name: string, options: SaveOptions = {}): Promise<SamplerPath> {
    const fields = { path: name, kind: 'snapshot', ...ttl(options) };
    return (await this.#save('save_weights_for_sampler', 'SaveWeightsForSampler', fields, options.signal)) as SamplerPath;
  }

  /** Replaces the weights; with `optimizer` its moments too. Some services allow it only as a model's first call. */
  async loadState(path: StatePath, { optimizer, signal }: CallOptions & { readonly optimizer: boolean }): Promise<void> {
    await this.#order.run(
      1,
      (seqId) => this.#submit('load_weights', 'LoadWeights', seqId, { path, optimizer }, signal),
      (future) => retrieveJson(this.#caller, future, loadedSchema, signal),
    );
  }

  async #loss(datums: Batch, lossFn: string, options: LossOptions, forwardOnly: boolean): Promise<ForwardBackwardOutput> {
    const { lossConfig = {}, signal } = options;
    const order = { modelId: this.modelId, lossFn, lossFnConfig: lossConfig, forwardOnly, signal };
    const call = new LossCall(this.#caller, this.#chunks, datums.map(trainingDatum), order);
    return this.#order.run(
      call.chunks.length,
      (firstSeqId) => call.submit(firstSeqId),
      (futures) => call.retrieve(futures),
    );
  }

  #save(path: string, type: RequestType, fields: object, signal: AbortSignal | undefined): Promise<string> {
    return this.#order.run(
      1,
      (seqId) => this.#submit(path, type, seqId, fields, signal),
      async (future) => (await retrieveJson(this.#caller, future, savedSchema, signal)).path,
    );
  }

  #submit(path: string, type: RequestType, seqId: number, fields: object, signal: AbortSignal | undefined): Promise<Future> {
    const body = JSON.stringify({ model_id: this.modelId, seq_id: seqId, ...fields, type: path });
    return submit(this.#caller, { method: 'POST', path, body, phase: 'submit', subject: 'model', signal }, type, 'model');
  }
}

function wireAdam(adam: AdamParams): Record<string, number> {
  return {
    learning_rate: adam.learningRate,
    beta1: adam.beta1 ?? 0.9,
    beta2: adam.beta2 ?? 0.95,
    eps: adam.eps ?? 1e-12,
    weight_decay: adam.weightDecay ?? 0,
    grad_clip_norm: adam.gradClipNorm ?? 0,
  };
}

function ttl({ ttlSeconds }: SaveOptions): { ttl_seconds?: number } {
  return ttlSeconds === undefined ? {} : { ttl_seconds: ttlSeconds };
}
