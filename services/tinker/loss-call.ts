import type { Call, Caller } from './caller.ts';
import { type ChunkLimits, chunkDatums } from './chunks.ts';
import { combineOutputs } from './combine.ts';
import { forwardBackwardOf } from './decode-result.ts';
import { BadRequest, ServiceFailed, TrainingStateUnknown } from './errors.ts';
import { type Future, retrieve, submit } from './futures.ts';
import { type BodyPolicy, trainingBody, whileItMayWantJson } from './training-body.ts';
import { asTensorValue, type ForwardBackwardOutput, type LossFnConfig, type TrainingDatum, withSparseInputs } from './wire/index.ts';

/** `parallel`: the chunks of one batch are sent at once, the first one last. */
export type ChunkPolicy = ChunkLimits & BodyPolicy & { readonly parallel: boolean };

/** A forward or forward_backward call over one batch, cut into chunks that take one sequence number each. */
export class LossCall {
  readonly chunks: readonly (readonly TrainingDatum[])[];
  readonly #caller: Caller;
  readonly #policy: ChunkPolicy;
  readonly #order: LossOrder;

  /** @throws BadRequest when the batch is empty */
  constructor(caller: Caller, policy: ChunkPolicy, datums: readonly TrainingDatum[], order: LossOrder) {
    // Servers of before protobuf have no common sparse form.
    this.chunks = chunkDatums(policy.bodies === 'json' ? datums : datums.map(withSparseInputs), policy);
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
    for (const [i, { lossFnOutputs }] of outputs.entries()) requireResultsFor(this.chunks[i] ?? [], lossFnOutputs);
    try {
      return combineOutputs(outputs);
    } catch (cause) {
      throw new ServiceFailed(cause instanceof Error ? cause.message : String(cause), { call: 'ForwardBackward', cause });
    }
  }

  async #submitChunk(datums: readonly TrainingDatum[], seqId: number, signal: AbortSignal | undefined): Promise<Future> {
    const { modelId, lossFn, lossFnConfig, forwardOnly } = this.#order;
    const sent = await trainingBody(this.#policy, { modelId, seqId, datums, lossFn, lossFnConfig, forwardOnly });
    const call: Call = { method: 'POST', ...sent, phase: 'submit', subject: 'model', signal };
    const type = forwardOnly ? 'Forward' : 'ForwardBackward';
    return whileItMayWantJson(this.#caller, this.#policy, () => submit(this.#caller, call, type, 'model'));
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

/** @throws ServiceFailed when there is not one result per datum, or not one log-probability per target */
function requireResultsFor(datums: readonly TrainingDatum[], outputs: ForwardBackwardOutput['lossFnOutputs']): void {
  if (outputs.length !== datums.length) {
    throw new ServiceFailed(`sent ${datums.length} datums, got results for ${outputs.length}`, { call: 'ForwardBackward' });
  }
  for (const [i, { logprobs }] of outputs.entries()) {
    const targets = datums[i]?.lossFnInputs.target_tokens;
    if (targets === undefined || logprobs === undefined) continue;
    const [sent] = asTensorValue(targets).shape;
    const [got] = logprobs.shape;
    if (got !== sent) {
      throw new ServiceFailed(`datum ${i} has ${sent} target tokens, its result ${got} log-probabilities`, { call: 'ForwardBackward' });
    }
  }
}

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
