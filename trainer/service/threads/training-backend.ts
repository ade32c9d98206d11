import type { AdamSettings, LoraSettings } from '../../engine/types.ts';
import { type BaseModelFile, ThreadCalls } from './thread-calls.ts';

/** Everything a model is, between two optimizer steps: LoRA weights and Adam's moments, each as safetensors bytes. */
export type ModelState = { readonly weights: Uint8Array; readonly optimizer: Uint8Array };

/** `gradNorm` is the gradient's norm before clipping; when it is not finite, `state` is spoilt. */
export type OptimStepResult = { readonly gradNorm: number; readonly step: number; readonly state: ModelState };

/** State to start from; without `optimizer` the moments start at zero. */
export type StartState = ModelState | Omit<ModelState, 'optimizer'>;

export type TrainingCall =
  | { readonly op: 'create'; readonly modelId: string; readonly baseModel: string; readonly lora: LoraSettings }
  | { readonly op: 'restore'; readonly modelId: string; readonly baseModel: string; readonly state: StartState }
  | { readonly op: 'forwardBackward'; readonly modelId: string; readonly body: Uint8Array }
  | { readonly op: 'optimStep'; readonly modelId: string; readonly adam: AdamSettings }
  | { readonly op: 'drop'; readonly modelId: string };

/**
 * What training needs from the engine. Deterministic: the same calls give the same bytes, on which recovery from the journal rests.
 * A call that cannot be carried out because of its content rejects with UserError.
 */
export interface TrainingBackend {
  create(modelId: string, baseModel: string, lora: LoraSettings): Promise<ModelState>;
  /** Puts a model back as it was (its accumulated gradients are empty) and answers its state. */
  restore(modelId: string, baseModel: string, state: StartState): Promise<ModelState>;
  /** `body` is a protobuf ForwardBackwardRequest; answers protobuf ForwardBackwardOutput. Gradients add up until the next optimStep. */
  forwardBackward(modelId: string, body: Uint8Array): Promise<Uint8Array<ArrayBuffer>>;
  optimStep(modelId: string, adam: AdamSettings): Promise<OptimStepResult>;
  drop(modelId: string): Promise<void>;
}

/** The engine in a worker thread of its own, so that HTTP answers while a batch is trained. */
export class TrainingThread implements TrainingBackend {
  readonly #thread: ThreadCalls<TrainingCall>;

  constructor(models: readonly BaseModelFile[], onDeath: (reason: Error) => void) {
    this.#thread = new ThreadCalls(new URL('./training-thread.ts', import.meta.url), models, onDeath);
  }

  create(modelId: string, baseModel: string, lora: LoraSettings): Promise<ModelState> {
    return this.#thread.call({ op: 'create', modelId, baseModel, lora });
  }

  restore(modelId: string, baseModel: string, state: StartState): Promise<ModelState> {
    return this.#thread.call({ op: 'restore', modelId, baseModel, state });
  }

  forwardBackward(modelId: string, body: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    return this.#thread.call({ op: 'forwardBackward', modelId, body });
  }

  optimStep(modelId: string, adam: AdamSettings): Promise<OptimStepResult> {
    return this.#thread.call({ op: 'optimStep', modelId, adam });
  }

  drop(modelId: string): Promise<void> {
    return this.#thread.call({ op: 'drop', modelId });
  }

  get ready(): Promise<unknown> {
    return this.#thread.ready;
  }

  stop(): Promise<void> {
    return this.#thread.stop();
  }
}
