import type { Call, Caller } from './caller.ts';
import { type ChunkLimits, chunkDatums } from './chunks.ts';
import { combineOutputs } from './combine.ts';
import { forwardBackwardOf } from './decode-result.ts';
import { BadRequest, ServiceFailed, TrainingStateUnknown } from './errors.ts';
import { type Future, retrieve, submit } from './futures.ts';
import { encodeForwardBackwardRequest, type ForwardBackwardOutput, type LossFnConfig, type TrainingDatum } from './wire/index.ts';

/** `parallel`: the chunks of one batch are sent at once, the first one last. `compress`: as zstd frames. */
export type ChunkPolicy = ChunkLimits & { readonly parallel: boolean; readonly compress: boolean };

/** A forward or forward_backward call over one batch, cut into chunks that take one sequence number each. */
export class LossCall {
  readonly chunks: readonly (readonly TrainingDatum[])[];
  readonly #caller: Caller;
  readonly #policy: ChunkPolicy;
  readonly #order: LossOrder;

  /** @throws BadRequest when the batch is empty */
  constructor(caller: Caller, policy: ChunkPolicy, datums: readonly TrainingDatum[], order: LossOrder) {
    this.chunks = chunkDatums(datums, policy);
    if (this.chunks.length === 0) throw new BadRequest('the batch is empty', { call: 'forward_backward' });
    this.#caller = caller;
    this.#policy = policy;
    this.#order = order;
  }

  /** Sends all chunks. In parallel, the first goes last: a server that has it has all of the batch. */
  async submit(firstSeqId: number): Promise<Future[]> {
    return this.#keepingBlame(async () => {
      const send = (i: number, signal: AbortSignal | undefined) => this.#submitChunk(this.chunks[i] ?? [], firstSeqId + i, signal);
      const indices = this.chunks.map((_, i) => i);
      const { signal } = this.#order;
      if (!this.#policy.parallel) {
        const futures: Future[] = [];
        for (const i of indices) futures.push(await send(i, signal));
        return futures;
      }
      const others = await allOrNone(indices.slice(1), signal, send);
      return [await send(0, signal), ...others];
    });
  }

  async retrieve(futures: readonly Future[]): Promise<ForwardBackwardOutput> {
    return this.#keepingBlame(async () => {
      const outputs = await allOrNone(futures, this.#order.signal, async (future, signal) =>
        forwardBackwardOf(await retrieve(this.#caller, future, signal), future),
      );
      return this.#combined(outputs);
    });
  }

  #combined(outputs: readonly ForwardBackwardOutput[]): ForwardBackwardOutput {
    for (const [i, { lossFnOutputs }] of outputs.entries()) {
      const sent = this.chunks[i]?.length ?? 0;
      if (lossFnOutputs.length !== sent) {
        throw new ServiceFailed(`sent ${sent} datums, got results for ${lossFnOutputs.length}`, { call: 'ForwardBackward' });
      }
    }
    try {
      return combineOutputs(outputs);
    } catch (cause) {
      throw new ServiceFailed(cause instanceof Error ? cause.message : String(cause), { call: 'ForwardBackward', cause });
    }
  }

  #submitChunk(datums: readonly TrainingDatum[], seqId: number, signal: AbortSignal | undefined): Promise<Future> {
    const { modelId, lossFn, lossFnConfig, forwardOnly } = this.#order;
    const body = encodeForwardBackwardRequest({ modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly });
    const reserves = { bytes: body.byteLength, of: 'training' } as const;
    const call: Call = { method: 'POST', path: 'forward_backward', body, reserves, phase: 'submit', subject: 'model', signal };
    return submit(this.#caller, call, forwardOnly ? 'Forward' : 'ForwardBackward', 'model');
  }

  /** When one of several chunks is judged bad, the others' gradients may have been added: it is no longer just a bad request. */
  async #keepingBlame<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const isJudged = error instanceof BadRequest || error instanceof ServiceFailed;
      if (!isJudged || this.chunks.length === 1 || this.#order.forwardOnly) throw error;
      throw new TrainingStateUnknown(
        `one of ${this.chunks.length} chunks failed, the others may have added their gradients (${error.message}); rebuild the model from its last saved state`,
        { ...error, cause: error },
      );
    }
  }
}

export type LossOrder = {
  readonly modelId: string;
  readonly lossFn: string;
  readonly lossFnConfig: LossFnConfig;
  readonly forwardOnly: boolean;
  readonly signal: AbortSignal | undefined;
};

/** Runs all at once; the first failure aborts the rest, so that nothing goes on polling for a lost cause. */
async function allOrNone<Item, Result>(
  items: readonly Item[],
  signal: AbortSignal | undefined,
  work: (item: Item, signal: AbortSignal | undefined) => Promise<Result>,
): Promise<Result[]> {
  const [only] = items;
  if (only !== undefined && items.length === 1) return [await work(only, signal)];
  const rest = new AbortController();
  const either = signal === undefined ? rest.signal : AbortSignal.any([signal, rest.signal]);
  try {
    return await Promise.all(items.map((item) => work(item, either)));
  } catch (error) {
    rest.abort(error);
    throw error;
  }
}
