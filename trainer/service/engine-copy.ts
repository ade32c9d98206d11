import { UserError } from './failures.ts';
import type { RunStore } from './run-store.ts';
import type { TrainingBackend } from './threads/training-backend.ts';

/** The engine's copy of one model. It can be made again at any time from what the model has stored. */
export class EngineCopy {
  readonly #store: RunStore;
  readonly #backend: TrainingBackend;
  /** The engine holds the model as it is after the last finished call, with its gathered gradients. */
  isThere = false;

  constructor(store: RunStore, backend: TrainingBackend) {
    this.#store = store;
    this.#backend = backend;
  }

  /** Puts the stored state into the engine, if it is not there, and gathers the gradients since then again. */
  async provide(): Promise<void> {
    if (this.isThere) return;
    const { modelId, baseModel } = this.#store.model;
    const state = this.#store.state();
    if (baseModel === null) throw new UserError(`model ${modelId} was not created: its creation failed`);
    await this.#backend.restore(modelId, baseModel, state);
    for (const request of this.#store.ledger.gradientRequests()) {
      await this.#backend.forwardBackward(modelId, this.#store.body(request));
    }
    this.isThere = true;
  }

  async drop(): Promise<void> {
    if (this.isThere) await this.#backend.drop(this.#store.model.modelId);
    this.isThere = false;
  }
}
