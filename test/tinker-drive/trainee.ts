import type { StatePath } from '../../core/ids.ts';
import type { CreatedModel, ForwardBackwardOutput, TinkerClient, TrainingClient } from '../../services/tinker/index.ts';
import type { StepOutcome } from './recorder.ts';
import { lossShape } from './sdk-shape.ts';

const RANK = 4;

/** A model whose steps are independent: a client that met a failure is replaced, and the next call takes the next number. */
export class Trainee {
  readonly modelId: string;
  readonly #client: TinkerClient;
  #nextSeqId: number;

  constructor(client: TinkerClient, { modelId, nextSeqId }: CreatedModel) {
    this.modelId = modelId;
    this.#client = client;
    this.#nextSeqId = nextSeqId;
  }

  async do<T>(call: (training: TrainingClient) => Promise<T>): Promise<T> {
    const training = this.#client.training(this.modelId, { nextSeqId: this.#nextSeqId });
    const result = call(training);
    this.#nextSeqId = training.nextSeqId;
    return result;
  }
}

export async function fresh(client: TinkerClient, baseModel: string, seed: number, signal: AbortSignal): Promise<StepOutcome<Trainee>> {
  const created = await client.createModel({ baseModel, rank: RANK, seed, trainUnembed: false, signal });
  return { value: new Trainee(client, created), result: '<client object>' };
}

type FromStateOptions = { readonly optimizer: boolean; readonly signal: AbortSignal };

export async function fromState(client: TinkerClient, path: StatePath, options: FromStateOptions): Promise<Trainee> {
  return new Trainee(client, await client.createModelFromState(path, options));
}

export function asOutcome(output: ForwardBackwardOutput): StepOutcome<ForwardBackwardOutput> {
  return { value: output, result: lossShape(output) };
}
