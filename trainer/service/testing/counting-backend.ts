import { UserError } from '../failures.ts';
import type { ModelState, StartState, TrainingBackend } from '../threads/training-backend.ts';

/** For tests, a model of one number: forward_backward adds its body's first byte to the gradient, a step adds the gradient times the rate. */
export class CountingBackend implements TrainingBackend {
  readonly models = new Map<string, { value: number; steps: number; gradient: number }>();
  readonly calls: string[] = [];
  /** While set, forwardBackward does not come to an end. */
  hold: Promise<void> | null = null;

  async create(modelId: string): Promise<ModelState> {
    this.calls.push('create');
    this.models.set(modelId, { value: 0, steps: 0, gradient: 0 });
    return this.#state(modelId);
  }

  async restore(modelId: string, _base: string, state: StartState): Promise<ModelState> {
    const optimizer = 'optimizer' in state ? new Float64Array(state.optimizer.slice().buffer)[0] : 0;
    this.models.set(modelId, { value: new Float64Array(state.weights.slice().buffer)[0] ?? 0, steps: optimizer ?? 0, gradient: 0 });
    return this.#state(modelId);
  }

  async forwardBackward(modelId: string, body: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    await this.hold;
    const amount = body[0] ?? 0;
    if (amount === 255) throw new UserError('data[0]: is bad');
    this.calls.push(`gradient ${amount}`);
    this.#model(modelId).gradient += amount;
    return new Uint8Array([amount, 1]);
  }

  async optimStep(modelId: string, adam: { readonly learningRate: number }) {
    this.calls.push('step');
    const model = this.#model(modelId);
    const gradNorm = Math.abs(model.gradient);
    model.value += adam.learningRate * model.gradient;
    model.steps += 1;
    model.gradient = 0;
    return { gradNorm, step: model.steps, state: this.#state(modelId) };
  }

  async drop(modelId: string): Promise<void> {
    this.models.delete(modelId);
  }

  #model(modelId: string) {
    const model = this.models.get(modelId);
    if (model === undefined) throw new Error('not in the engine');
    return model;
  }

  #state(modelId: string): ModelState {
    const { value, steps } = this.#model(modelId);
    return { weights: new Uint8Array(Float64Array.of(value).buffer), optimizer: new Uint8Array(Float64Array.of(steps).buffer) };
  }
}
