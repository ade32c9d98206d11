import { CheckpointFiles } from './checkpoint-files.ts';
import { HttpFailure, UserError } from './failures.ts';
import { type CheckpointKind, CREATE_SEQ, formatPath } from './ids.ts';
import type { FutureState, Outcome } from './outcome.ts';
import type { Operation, RunRecordOf } from './run-journal.ts';
import { checkpointKey, REMEMBERED_WHEN_IDLE, type StoredRequest } from './run-ledger.ts';
import { type Execution, execute, type RunSurroundings } from './run-operations.ts';
import { RunStore } from './run-store.ts';
import { Waiters } from './waiters.ts';

/**
 * One model in training. A call is written to the journal before it is answered, carried out when its sequence number's turn comes,
 * and its result is written together with the model's new state in one record: after a kill, either the call was carried out and its
 * result is there, or it is carried out again from the same state. Gradients gathered since the last state are gathered again from
 * the journaled calls, which gives the same bits because the engine is deterministic.
 */
export class TrainingRun {
  readonly #store: RunStore;
  readonly #files: CheckpointFiles;
  readonly #around: RunSurroundings;
  readonly #waiters = new Waiters<number>();
  #isInEngine = false;
  #isWorking = false;

  private constructor(folder: string, around: RunSurroundings) {
    this.#around = around;
    this.#store = new RunStore(folder);
    this.#files = new CheckpointFiles(folder);
  }

  /** Makes a new model; `operation` is its creation. Durable when this returns. */
  static begin(folder: string, around: RunSurroundings, model: RunRecordOf<'model'>, operation: Operation): TrainingRun {
    const run = new TrainingRun(folder, around);
    run.#store.write(model);
    run.submit(CREATE_SEQ, operation);
    return run;
  }

  /** Takes up a model from its folder; null when the folder's journal was torn before the model's first records. */
  static recover(folder: string, around: RunSurroundings): TrainingRun | null {
    const run = new TrainingRun(folder, around);
    const { ledger } = run.#store;
    if (ledger.model === null || (ledger.nextSeq === CREATE_SEQ && ledger.request(CREATE_SEQ) === null)) {
      run.close();
      return null;
    }
    run.#work();
    return run;
  }

  get model(): RunRecordOf<'model'> {
    return this.#store.model;
  }

  get checkpoints(): readonly RunRecordOf<'checkpoint'>[] {
    return [...this.#store.ledger.checkpoints.values()];
  }

  /** ISO time of the last finished call, or of the creation. */
  get lastRequestTime(): string {
    return this.#store.ledger.lastResult?.record.at ?? this.model.createdAt;
  }

  /** Accepts a call, once per sequence number: a repeat changes nothing. Durable when this returns. */
  submit(seq: number, operation: Operation, body?: Uint8Array): void {
    if (seq < this.#store.ledger.nextSeq || this.#store.ledger.request(seq) !== null) return;
    this.#store.write({ record: 'request', seq, operation }, body, true);
    this.#work();
  }

  future(seq: number): FutureState {
    const result = this.#store.ledger.result(seq);
    if (result === null) {
      if (seq < this.#store.ledger.nextSeq) return { kind: 'gone' };
      return this.#store.ledger.request(seq) === null ? { kind: 'unknown' } : { kind: 'pending' };
    }
    const { outcome } = result.record;
    return outcome.kind === 'proto' ? { kind: 'proto', bytes: this.#store.read(result.payload) } : outcome;
  }

  /** Resolves when the call `seq` has ended or the time is up. */
  async wait(seq: number, timeoutMs: number): Promise<void> {
    if (this.future(seq).kind === 'pending') await this.#waiters.wait(seq, timeoutMs);
  }

  checkpoint(kind: CheckpointKind, name: string): RunRecordOf<'checkpoint'> | null {
    return this.#store.ledger.checkpoints.get(checkpointKey(kind, name)) ?? null;
  }

  /** LoRA weights of a checkpoint and, for training checkpoints, the optimizer state. Throws UserError when there is none. */
  readCheckpoint(kind: CheckpointKind, name: string): { readonly weights: Uint8Array; readonly optimizer: Uint8Array | null } {
    if (this.checkpoint(kind, name) === null) {
      throw new UserError(`${formatPath({ run: this.model.modelId, kind, name })}: no such checkpoint`);
    }
    return { weights: this.#files.weights(kind, name), optimizer: kind === 'weights' ? this.#files.optimizer(name) : null };
  }

  setExpiry(kind: CheckpointKind, name: string, expiresAt: string | null): void {
    const checkpoint = this.checkpoint(kind, name);
    if (checkpoint === null) throw new HttpFailure(404, `no checkpoint ${checkpointKey(kind, name)} in ${this.model.modelId}`);
    this.#store.write({ ...checkpoint, expiresAt }, undefined, true);
  }

  removeCheckpoint(kind: CheckpointKind, name: string): void {
    if (this.checkpoint(kind, name) === null) return;
    this.#store.write({ record: 'checkpoint_removed', kind, name }, undefined, true);
    this.#files.remove(kind, name);
  }

  /** Frees the engine's copy and trims the journal. The model comes back by itself with its next call. */
  async unload(): Promise<void> {
    if (this.#isWorking) return;
    this.#store.compact(REMEMBERED_WHEN_IDLE);
    if (!this.#isInEngine) return;
    this.#isInEngine = false;
    await this.#around.backend.drop(this.model.modelId);
  }

  close(): void {
    this.#store.close();
  }

  /** Carries out calls as long as the next one is there. */
  #work(): void {
    if (this.#isWorking) return;
    this.#isWorking = true;
    this.#workThrough().catch(this.#around.onFatal);
  }

  async #workThrough(): Promise<void> {
    for (
      let request = this.#store.ledger.request(this.#store.ledger.nextSeq);
      request !== null;
      request = this.#store.ledger.request(this.#store.ledger.nextSeq)
    ) {
      const execution = await this.#tryExecute(request);
      for (const record of execution.records) this.#store.write(record);
      this.#finish(request.record.seq, execution);
    }
    // Reset before anything else can run: a call submitted a moment later must find nobody at work.
    this.#isWorking = false;
  }

  async #tryExecute(request: StoredRequest): Promise<Execution> {
    try {
      if (request.record.seq !== CREATE_SEQ) await this.#bringIntoEngine();
      const execution = await execute({
        run: this,
        ...request.record,
        files: this.#files,
        body: () => this.#store.body(request),
        around: this.#around,
        storedState: () => this.#store.state(),
      });
      this.#isInEngine = true;
      return execution;
    } catch (error) {
      // What the engine holds after a failure is unknown; the next call starts from the journal.
      this.#isInEngine = false;
      const category = error instanceof UserError ? 'user' : 'server';
      return {
        outcome: { kind: 'failed', error: error instanceof Error ? error.message : String(error), category },
        state: null,
        records: [],
      };
    }
  }

  #finish(seq: number, { outcome, state }: Execution): void {
    const at = this.#around.now().toISOString();
    this.#store.writeDone({ seq, outcome: withoutBytes(outcome), at }, state, outcome.kind === 'proto' ? outcome.bytes : null);
    this.#waiters.notify(seq);
  }

  /** Puts the stored state into the engine and gathers the gradients since then again. */
  async #bringIntoEngine(): Promise<void> {
    if (this.#isInEngine) return;
    const { modelId, baseModel } = this.model;
    const state = this.#store.state();
    if (baseModel === null) throw new UserError(`model ${modelId} was not created: its creation failed`);
    await this.#around.backend.restore(modelId, baseModel, state);
    for (const request of this.#store.ledger.gradientRequests()) {
      await this.#around.backend.forwardBackward(modelId, this.#store.body(request));
    }
    this.#isInEngine = true;
  }
}

function withoutBytes(outcome: Outcome): RunRecordOf<'done'>['outcome'] {
  if (outcome.kind === 'proto') return { kind: 'proto' };
  return outcome.kind === 'json' ? { kind: 'json', value: { ...outcome.value } } : outcome;
}
