import type { CheckpointFiles } from './checkpoint-files.ts';
import { HttpFailure, UserError } from './failures.ts';
import { CHECKPOINT_KINDS, type CheckpointKind, formatPath } from './ids.ts';
import type { RunRecordOf } from './run-journal.ts';
import { checkpointKey } from './run-ledger.ts';
import type { RunStore } from './run-store.ts';

/** So long it is known of a checkpoint that its time was over, and not only that it is not there. */
const REMEMBER_EXPIRED_MS = 7 * 24 * 3600 * 1000;

type Checkpoint = RunRecordOf<'checkpoint'>;

/** The checkpoints of one model. One whose time is over is not there any more, from that moment on; its files go at the next sweep. */
export class RunCheckpoints {
  readonly #store: RunStore;
  readonly #files: CheckpointFiles;
  readonly #now: () => Date;

  constructor(store: RunStore, files: CheckpointFiles, now: () => Date) {
    this.#store = store;
    this.#files = files;
    this.#now = now;
  }

  /** What lists show: everything that has a name. */
  named(): readonly Checkpoint[] {
    return [...this.#store.ledger.checkpoints.values()].filter((each) => each.kind !== 'ephemeral' && !this.#isOver(each));
  }

  get(kind: CheckpointKind, name: string): Checkpoint | null {
    const checkpoint = this.#store.ledger.checkpoints.get(checkpointKey(kind, name));
    return checkpoint === undefined || this.#isOver(checkpoint) ? null : checkpoint;
  }

  /** Says in words why there is no such checkpoint. */
  missing(kind: CheckpointKind, name: string): string {
    const { checkpoints, expired } = this.#store.ledger;
    const key = checkpointKey(kind, name);
    const at = expired.get(key)?.expiredAt ?? checkpoints.get(key)?.expiresAt ?? null;
    const path = formatPath({ run: this.#store.model.modelId, kind, name });
    return at === null ? `no checkpoint '${path}'` : `checkpoint '${path}' expired at ${at} and is gone`;
  }

  /** LoRA weights and, for training checkpoints, the optimizer state. Throws UserError when there is none such, Error when its files are damaged. */
  read(kind: CheckpointKind, name: string): { readonly weights: Uint8Array; readonly optimizer: Uint8Array | null } {
    const checkpoint = this.get(kind, name);
    if (checkpoint === null) throw new UserError(this.missing(kind, name));
    const stem = stemOf(checkpoint);
    const { weightsSha256, optimizerSha256 } = checkpoint;
    return {
      weights: this.#files.weights(kind, stem, weightsSha256),
      optimizer: kind === 'weights' ? this.#files.optimizer(stem, optimizerSha256) : null,
    };
  }

  /** Makes a checkpoint known whose files are written. From then on they stand for its name, and those that did before go. */
  add(checkpoint: Checkpoint): void {
    const { kind, name } = checkpoint;
    const before = this.#store.ledger.checkpoints.get(checkpointKey(kind, name));
    this.#store.write(checkpoint, undefined, true);
    if (before !== undefined && stemOf(before) !== stemOf(checkpoint)) this.#files.remove(kind, stemOf(before));
  }

  /** Removes files that no checkpoint has: a kill may have come between a record and what follows from it. */
  removeStrayFiles(): void {
    const all = [...this.#store.ledger.checkpoints.values()];
    for (const kind of CHECKPOINT_KINDS) this.#files.keepOnly(kind, all.filter((each) => each.kind === kind).map(stemOf));
  }

  /** Null: kept for good. */
  setTtl(kind: CheckpointKind, name: string, ttlSeconds: number | null): void {
    const expiresAt = ttlSeconds === null ? null : new Date(this.#now().getTime() + ttlSeconds * 1000).toISOString();
    this.#store.write({ ...this.#existing(kind, name), expiresAt }, undefined, true);
  }

  setPublic(kind: CheckpointKind, name: string, isPublic: boolean): void {
    this.#store.write({ ...this.#existing(kind, name), public: isPublic }, undefined, true);
  }

  remove(kind: CheckpointKind, name: string): void {
    this.#remove(this.#existing(kind, name), null);
  }

  removeExpired(): void {
    for (const checkpoint of this.#store.ledger.checkpoints.values()) {
      if (this.#isOver(checkpoint)) this.#remove(checkpoint, checkpoint.expiresAt);
    }
    this.#store.ledger.forgetExpiredBefore(this.#now().getTime() - REMEMBER_EXPIRED_MS);
  }

  #remove(checkpoint: Checkpoint, expiredAt: string | null): void {
    const { kind, name } = checkpoint;
    this.#store.write({ record: 'checkpoint_removed', kind, name, expiredAt }, undefined, true);
    this.#files.remove(kind, stemOf(checkpoint));
  }

  #existing(kind: CheckpointKind, name: string): Checkpoint {
    const checkpoint = this.get(kind, name);
    if (checkpoint === null) throw new HttpFailure(404, this.missing(kind, name));
    return checkpoint;
  }

  #isOver({ expiresAt }: Checkpoint): boolean {
    return expiresAt !== null && Date.parse(expiresAt) <= this.#now().getTime();
  }
}

const stemOf = ({ stem, name }: Checkpoint): string => stem ?? name;
