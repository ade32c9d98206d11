import type { Call, Caller } from './caller.ts';
import { type ChunkLimits, chunkDatums } from './chunks.ts';
import { BadRequest } from './errors.ts';
import { type Future, submit } from './futures.ts';
import { allOrNone, keepingBlame } from './loss-result.ts';
import { encodeForwardBackwardRequest, type LossFnConfig, type TrainingDatum } from './wire/index.ts';

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
    return keepingBlame(this.chunks.length, this.#order.forwardOnly, async () => {
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

  #submitChunk(datums: readonly TrainingDatum[], seqId: number, signal: AbortSignal | undefined): Promise<Future> {
    const { modelId, lossFn, lossFnConfig, forwardOnly } = this.#order;
    const body = encodeForwardBackwardRequest({ modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly });
    const reserves = { bytes: body.byteLength, of: 'training' } as const;
    const call: Call = { method: 'POST', path: 'forward_backward', body, reserves, phase: 'submit', subject: 'model', signal };
    return submit(this.#caller, call, forwardOnly ? 'Forward' : 'ForwardBackward', 'model');
  }
}

export type LossOrder = {
  readonly modelId: string;
  readonly lossFn: string;
  readonly lossFnConfig: LossFnConfig;
  readonly forwardOnly: boolean;
  readonly signal: AbortSignal | undefined;
};
