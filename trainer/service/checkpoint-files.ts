import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckpointKind } from './ids.ts';
import { replaceFile } from './journal.ts';
import type { ModelState } from './threads/training-backend.ts';

/**
 * A model's checkpoints on disk: `<kind>/<name>.safetensors` (LoRA weights) and, for training checkpoints,
 * `<kind>/<name>.optimizer.safetensors`. Whether a checkpoint exists is for the model's journal to say; the files are its content.
 */
export class CheckpointFiles {
  readonly #folder: string;

  constructor(modelFolder: string) {
    this.#folder = modelFolder;
  }

  /** Returns the size of everything written, in bytes. */
  write(kind: CheckpointKind, name: string, state: ModelState): number {
    mkdirSync(join(this.#folder, kind), { recursive: true });
    if (kind === 'weights') replaceFile(this.#optimizerPath(kind, name), state.optimizer);
    replaceFile(this.#weightsPath(kind, name), state.weights);
    return state.weights.length + (kind === 'weights' ? state.optimizer.length : 0);
  }

  weights(kind: CheckpointKind, name: string): Uint8Array {
    return new Uint8Array(readFileSync(this.#weightsPath(kind, name)));
  }

  optimizer(name: string): Uint8Array {
    return new Uint8Array(readFileSync(this.#optimizerPath('weights', name)));
  }

  remove(kind: CheckpointKind, name: string): void {
    rmSync(this.#weightsPath(kind, name), { force: true });
    rmSync(this.#optimizerPath(kind, name), { force: true });
  }

  #weightsPath(kind: CheckpointKind, name: string): string {
    return join(this.#folder, kind, `${name}.safetensors`);
  }

  #optimizerPath(kind: CheckpointKind, name: string): string {
    return join(this.#folder, kind, `${name}.optimizer.safetensors`);
  }
}

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
