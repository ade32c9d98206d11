import { BadRequest } from '../errors.ts';
import { type Future, submit } from '../futures/futures.ts';
import type { Call, Caller } from '../http/caller.ts';
import { asTensorValue, estimatedBytes, type LossFnConfig, type TrainingDatum, withSparseInputs } from '../wire/index.ts';
import { type ChunkLimits, chunkDatums } from './chunks.ts';
import { allOrNone, keepingBlame } from './loss-result.ts';
import { type BodyPolicy, ofCaller, trainingBody, whileItMayWantJson } from './training-body.ts';

/** `parallel`: the chunks of one batch are sent at once, the first one last. */
export type ChunkPolicy = ChunkLimits & BodyPolicy & { readonly parallel: boolean };

/** A forward or forward_backward call over one batch, cut into chunks that take one sequence number each. */
export class LossCall {
  readonly chunks: readonly (readonly TrainingDatum[])[];
  readonly #caller: Caller;
  readonly #policy: ChunkPolicy;
  readonly #order: LossOrder;

  /** @throws BadRequest when the batch is empty, or a tensor does not have its shape */
  constructor(caller: Caller, policy: ChunkPolicy, datums: readonly TrainingDatum[], order: LossOrder) {
    // Servers of before protobuf have no common sparse form.
    const sent = policy.bodies === 'json' ? datums : ofCaller(() => datums.map(withSparseInputs));
    this.chunks = chunkDatums(sent, policy);
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

  /** Chunk by chunk, how many targets each datum has; null for a datum without. */
  get targetCounts(): (number | null)[][] {
    return this.chunks.map((chunk) =>
      chunk.map(({ lossFnInputs: { target_tokens } }) => (target_tokens && asTensorValue(target_tokens).shape[0]) ?? null),
    );
  }

  async #submitChunk(datums: readonly TrainingDatum[], seqId: number, signal: AbortSignal | undefined): Promise<Future> {
    const { modelId, lossFn, lossFnConfig, forwardOnly } = this.#order;
    const bytes = datums.reduce((sum, datum) => sum + estimatedBytes(datum), 0);
    // Before the body is made: those that wait for room take up none.
    const release = await this.#caller.backPressure.submission({ bytes, of: 'training' }, this.#caller.untilClosed(signal));
    try {
      const sent = await trainingBody(this.#policy, { modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly });
      const call: Call = { method: 'POST', ...sent, phase: 'submit', subject: 'model', signal };
      const type = forwardOnly ? 'Forward' : 'ForwardBackward';
      return await whileItMayWantJson(this.#caller, this.#policy, () => submit(this.#caller, call, type, 'model'));
    } finally {
      release();
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
