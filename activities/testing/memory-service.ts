import { samplerSeed } from '../../core/random/seeded.ts';
import type { StatePath, TinkerClient } from '../../services/tinker/index.ts';
import { BadRequest, TrainingStateUnknown } from '../../services/tinker/index.ts';
import { ModelAccess } from '../model-access.ts';

/** What has reached a model: each update by its gradients. */
type Model = { readonly id: string; lineage: string[]; gradients: string[]; readonly results: Map<number, unknown>; isLost: boolean };

type Saved = {
  readonly kind: string;
  readonly modelId: string;
  readonly seqId: number;
  readonly requestIds: string[];
  readonly targetCounts?: number[][];
};

/**
 * A training service that knows of each model what it was trained on, in order. A loss is a number made of that and of the batch, so
 * that two models show the same losses only when the same reached them.
 */
export class MemoryService {
  readonly models = new Map<string, Model>();
  /** What was saved, by path; a state that is gone stays known here. */
  readonly saved = new Map<string, readonly string[]>();
  readonly #gone = new Set<string>();
  /** Samples that were taken, one token each. */
  samples = 0;
  /** Tokens of all sequences that were taken. */
  tokens = 0;
  /** Of each session: how often it was joined, minus how often that client has left. */
  readonly joined = new Map<string, number>();
  /** Loaded state lacks its last update. */
  loadsWrongly = false;
  #sessions = 0;

  access(): ModelAccess {
    return new ModelAccess(async (_, sessionId) => {
      if (sessionId !== undefined) this.#join(sessionId, 1);
      return this.#client(sessionId ?? `session-${++this.#sessions}`, sessionId !== undefined);
    });
  }

  /** No model that was made before and none of its calls is known from now on. */
  loseAll({ statesToo }: { readonly statesToo: boolean }): void {
    for (const model of this.models.values()) model.isLost = true;
    if (statesToo) for (const path of this.saved.keys()) this.#gone.add(path);
  }

  #join(sessionId: string, by: number): void {
    this.joined.set(sessionId, (this.joined.get(sessionId) ?? 0) + by);
  }

  #client(sessionId: string, isJoined: boolean): TinkerClient {
    const client = {
      sessionId,
      createModel: async () => this.#made(sessionId, []),
      createModelFromState: async (path: StatePath) => {
        const lineage = this.saved.get(path);
        if (!lineage || this.#gone.has(path)) throw new BadRequest(`no checkpoint ${path}`, { call: 'load_weights' });
        return this.#made(sessionId, this.loadsWrongly ? lineage.slice(0, -1) : lineage);
      },
      training: (modelId: string, { nextSeqId }: { nextSeqId: number }) => this.#training(modelId, nextSeqId),
      resume: (saved: Saved) => this.#pending(saved),
      sampler: async () => ({ sample: async () => this.#sampled() }),
      checkpoints: { assertListed: async () => true },
      endSession: async () => {},
      leave: async () => isJoined && this.#join(sessionId, -1),
      close: async () => {},
    };
    return client as unknown as TinkerClient;
  }

  #sampled() {
    this.samples++;
    return { tokens: Int32Array.of(10), logprobs: Float32Array.of(-1), stop: 'stop', promptCacheHitTokens: 0 };
  }

  #made(sessionId: string, lineage: readonly string[]) {
    const id = `${sessionId}:train:0`;
    this.models.set(id, { id, lineage: [...lineage], gradients: [], results: new Map(), isLost: false });
    return { modelId: id, nextSeqId: 1 };
  }

  #model(id: string): Model {
    const model = this.models.get(id);
    if (!model || model.isLost) throw new TrainingStateUnknown(`no model ${id}`, { call: 'training', status: 404 });
    return model;
  }

  #training(modelId: string, nextSeqId: number) {
    const take = (kind: string, carryOut: (model: Model) => unknown) => async () => {
      const model = this.#model(modelId);
      if (nextSeqId !== model.results.size + 1) throw new BadRequest(`call ${nextSeqId} is out of order`, { call: kind });
      model.results.set(nextSeqId, carryOut(model));
      const saved = { kind, modelId, seqId: nextSeqId, requestIds: [`${modelId}:${nextSeqId}`] };
      nextSeqId++;
      return this.#pending(kind === 'forward' || kind === 'forwardBackward' ? { ...saved, targetCounts: [[1]] } : saved);
    };
    type Sequences = readonly { readonly modelInput: Int32Array }[];
    const seen = (sequences: Sequences) => {
      this.tokens += sequences.reduce((sum, { modelInput }) => sum + modelInput.length + 1, 0);
      return sequences.map(({ modelInput }) => String.fromCharCode(...modelInput)).join('|');
    };
    return {
      get nextSeqId() {
        return nextSeqId;
      },
      submitForwardBackward: (sequences: Sequences) =>
        take('forwardBackward', (model) => {
          const batch = seen(sequences);
          model.gradients.push(batch);
          return { metrics: { 'loss:sum': lossOf([...model.lineage, batch]) }, lossFnOutputs: [] };
        })(),
      submitForward: (sequences: Sequences) =>
        take('forward', (model) => {
          const values = new Float64Array([-lossOf([...model.lineage, seen(sequences)])]);
          return { metrics: {}, lossFnOutputs: [{ logprobs: { values, shape: [1] } }] };
        })(),
      submitOptimStep: take('optimStep', (model) => {
        model.lineage.push(model.gradients.join('+'));
        model.gradients = [];
        return { metrics: { 'grad_norm:mean': lossOf(model.lineage) } };
      }),
      submitSaveState: (name: string) =>
        take('saveState', (model) => {
          const path = `tinker://${modelId}/weights/${name}`;
          if (this.saved.has(path)) throw new BadRequest(`${path} exists already`, { call: 'save_weights' });
          this.saved.set(path, [...model.lineage]);
          return path;
        })(),
      submitSaveForSampler: (name: string) =>
        take('saveForSampler', (model) => {
          const path = `tinker://${modelId}/sampler_weights/${name}`;
          if (this.saved.has(path)) throw new BadRequest(`${path} exists already`, { call: 'save_weights_for_sampler' });
          this.saved.set(path, [...model.lineage]);
          return path;
        })(),
    };
  }

  #pending(saved: Saved) {
    return { saved, result: async () => this.#model(saved.modelId).results.get(saved.seqId) };
  }
}

/** Numbers that lie apart by far more than any tolerance. */
const lossOf = (parts: readonly string[]) => samplerSeed(parts.join('\n')) / 1000;
