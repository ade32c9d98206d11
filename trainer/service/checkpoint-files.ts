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

  /** Throws when the file is not there or not what was written; `checksum` is the SHA-256 of that, null when it is not known. */
  weights(kind: CheckpointKind, stem: string, checksum: string | null): Uint8Array {
    return readWhole(this.#weightsPath(kind, stem), checksum);
  }

  /** The same for the optimizer state of a training checkpoint. */
  optimizer(stem: string, checksum: string | null): Uint8Array {
    return readWhole(this.#optimizerPath('weights', stem), checksum);
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

function readWhole(path: string, checksum: string | null): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = new Uint8Array(readFileSync(path));
  } catch (error) {
    throw new Error(`${path}: the checkpoint's file cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (checksum === null || sha256(bytes) === checksum) return bytes;
  throw new Error(`${path}: the file is damaged, its checksum is not that of the checkpoint; restore it from a copy, or use another one`);
}

/** What the files of a save are called; no name has an `@`. */
export const fileStem = (name: string, seq: number): string => `${name}@${seq}`;

export const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
