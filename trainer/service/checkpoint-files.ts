import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { CheckpointKind } from './ids.ts';
import { replaceFile } from './journal.ts';
import type { ModelState } from './threads/training-backend.ts';

/**
 * A model's checkpoints on disk: `<kind>/<stem>.safetensors` (LoRA weights) and, for training checkpoints,
 * `<kind>/<stem>.optimizer.safetensors`. Which stem a checkpoint has is for the model's journal to say; every save has its own, so that
 * weights and optimizer state are replaced together, by one record.
 */
export class CheckpointFiles {
  readonly #folder: string;

  constructor(modelFolder: string) {
    this.#folder = modelFolder;
  }

  /** Returns the size of everything written, in bytes. */
  write(kind: CheckpointKind, stem: string, state: ModelState): number {
    mkdirSync(join(this.#folder, kind), { recursive: true });
    if (kind === 'weights') replaceFile(this.#optimizerPath(kind, stem), state.optimizer);
    replaceFile(this.#weightsPath(kind, stem), state.weights);
    return state.weights.length + (kind === 'weights' ? state.optimizer.length : 0);
  }

  weights(kind: CheckpointKind, stem: string): Uint8Array {
    return new Uint8Array(readFileSync(this.#weightsPath(kind, stem)));
  }

  optimizer(stem: string): Uint8Array {
    return new Uint8Array(readFileSync(this.#optimizerPath('weights', stem)));
  }

  remove(kind: CheckpointKind, stem: string): void {
    rmSync(this.#weightsPath(kind, stem), { force: true });
    rmSync(this.#optimizerPath(kind, stem), { force: true });
  }

  /** Removes what saves and removals that were cut short have left: all files but those of the given stems. */
  keepOnly(kind: CheckpointKind, stems: readonly string[]): void {
    const folder = join(this.#folder, kind);
    if (!existsSync(folder)) return;
    const kept = new Set(stems.flatMap((stem) => [this.#weightsPath(kind, stem), this.#optimizerPath(kind, stem)]));
    for (const path of readdirSync(folder).map((name) => join(folder, name))) if (!kept.has(path)) rmSync(path);
  }

  #weightsPath(kind: CheckpointKind, stem: string): string {
    return join(this.#folder, kind, `${stem}.safetensors`);
  }

  #optimizerPath(kind: CheckpointKind, stem: string): string {
    return join(this.#folder, kind, `${stem}.optimizer.safetensors`);
  }
}

/** What the files of a save are called; no name has an `@`. */
export const fileStem = (name: string, seq: number): string => `${name}@${seq}`;

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
