import { callOf, isSameCall } from './call-identity.ts';
import { trainingCall } from './call-log.ts';
import { CheckpointFiles } from './checkpoint-files.ts';
import { EngineCopy } from './engine-copy.ts';
import { HttpFailure, UserError } from './failures.ts';
import { CREATE_SEQ, trainingRequestId } from './ids.ts';
import type { FutureState, Outcome } from './outcome.ts';
import { RunCheckpoints } from './run-checkpoints.ts';
import type { CallIdentity, Operation, RunRecordOf } from './run-journal.ts';
import type { StoredRequest } from './run-ledger.ts';
import { type Execution, execute, type RunSurroundings } from './run-operations.ts';
import { RunStore } from './run-store.ts';
import { Waiters } from './waiters.ts';

/** How many results of a model that is at rest are kept, besides those that nobody has fetched. */
const KEPT_AT_REST = 16;

/**
 * One model in training. A call is written to the journal before it is answered, carried out when its sequence number's turn comes,
 * and its result is written together with the model's new state in one record: after a kill, either the call was carried out and its
 * result is there, or it is carried out again from the same state. Gradients gathered since the last state are gathered again from
 * the journaled calls, which gives the same bits because the engine is deterministic.
 */
export class TrainingRun {
  readonly checkpoints: RunCheckpoints;
  readonly #store: RunStore;
  readonly #files: CheckpointFiles;
  readonly #around: RunSurroundings;
  readonly #copy: EngineCopy;
  readonly #waiters = new Waiters<number>();
  #isWorking = false;
  #unloading: PromiseWithResolvers<void> | null = null;
  #clientIsGone = false;

  private constructor(folder: string, around: RunSurroundings) {
    this.#around = around;
    this.#store = new RunStore(folder);
    this.#files = new CheckpointFiles(folder);
    this.#copy = new EngineCopy(this.#store, around.backend);
    this.checkpoints = new RunCheckpoints(this.#store, this.#files, around.now);
  }

  /** Makes a new model; `operation` is its creation. Durable when this returns. */
  static begin(
    folder: string,
    around: RunSurroundings,
    model: RunRecordOf<'model'>,
    operation: Operation,
    call: CallIdentity,
  ): TrainingRun {
    const run = new TrainingRun(folder, around);
    run.#store.write(model);
    run.submit(CREATE_SEQ, operation, undefined, call);
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
    run.checkpoints.removeStrayFiles();
    run.#work();
    return run;
  }

  get model(): RunRecordOf<'model'> {
    return this.#store.model;
  }

  /** ISO time of the last finished call, or of the creation. */
  get lastRequestTime(): string {
    return this.#store.ledger.lastResult?.record.at ?? this.model.createdAt;
  }

  /**
   * Accepts a call, once per sequence number: a repeat changes nothing. Durable when this returns. Throws HttpFailure 400 for another call
   * under a used number (not 409, which the protocol's clients repeat for minutes).
   */
  submit(seq: number, operation: Operation, body?: Uint8Array, call: CallIdentity = callOf(operation, body)): void {
    if (this.checkRepeat(seq, call)) return;
    this.#store.write({ record: 'request', seq, operation, call }, body, true);
    this.#work();
  }

  /** True for a call that is known already. Throws HttpFailure 400 when the number belongs to another call. */
  checkRepeat(seq: number, call: CallIdentity): boolean {
    const { ledger } = this.#store;
    if (seq >= ledger.nextSeq && ledger.request(seq) === null) return false;
    const known = ledger.call(seq);
    if (known === null || isSameCall(known, call)) return true;
    const id = trainingRequestId(this.model.modelId, seq);
    const said = known.op === call.op ? `another ${known.op} call` : `a ${known.op} call`;
    throw new HttpFailure(400, `conflict: ${id} was ${said}; a number names one call for good: repeat that one, or take the next number`);
  }

  future(seq: number): FutureState {
    const result = this.#store.ledger.result(seq);
    if (result === null) {
      if (seq < this.#store.ledger.nextSeq) return { kind: 'gone' };
      return this.#store.ledger.request(seq) === null ? { kind: 'unknown' } : { kind: 'pending' };
    }
    return this.#store.outcome(result);
  }

  /** The same for a client: a result that it was given once may be forgotten some time. */
  fetch(seq: number): FutureState {
    const future = this.future(seq);
    this.#store.ledger.markFetched(seq);
    return future;
  }

  /** Resolves when the call `seq` has ended or the time is up. */
  async wait(seq: number, timeoutMs: number): Promise<void> {
    if (this.future(seq).kind === 'pending') await this.#waiters.wait(seq, timeoutMs);
  }

  /**
   * Frees the engine's copy and trims the journal, after the calls whose turn has come. The model comes back by itself with its next call.
   * `clientIsGone`: nobody will come for the results that were not fetched.
   */
  unload(clientIsGone = false): Promise<void> {
    const unloading = this.#unloading ?? Promise.withResolvers<void>();
    this.#unloading = unloading;
    this.#clientIsGone ||= clientIsGone;
    this.#work();
    return unloading.promise;
  }

  get isUnloading(): boolean {
    return this.#unloading !== null;
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
    for (;;) {
      const request = this.#store.ledger.request(this.#store.ledger.nextSeq);
      if (request !== null) await this.#carryOut(request);
      else if (this.#unloading !== null) await this.#unload(this.#unloading);
      else break;
    }
    // Reset before anything else can run: a call submitted a moment later must find nobody at work.
    this.#isWorking = false;
  }

  async #carryOut(request: StoredRequest): Promise<void> {
    const execution = await this.#tryExecute(request);
    for (const record of execution.records) {
      if (record.record === 'checkpoint') this.checkpoints.add(record);
      else this.#store.write(record);
    }
    this.#finish(request, execution);
  }

  async #unload(unloading: PromiseWithResolvers<void>): Promise<void> {
    this.#store.compact({ newest: KEPT_AT_REST, unfetched: !this.#clientIsGone });
    await this.#copy.drop();
    this.#unloading = null;
    this.#clientIsGone = false;
    unloading.resolve();
  }

  async #tryExecute(request: StoredRequest): Promise<Execution> {
    try {
      if (request.record.seq !== CREATE_SEQ) await this.#copy.provide();
      const execution = await execute({
        run: this,
        ...request.record,
        files: this.#files,
        body: () => this.#store.body(request),
        around: this.#around,
        storedState: () => this.#store.state(),
      });
      this.#copy.isThere = true;
      return execution;
    } catch (error) {
      // What the engine holds after a failure is unknown; the next call starts from the journal.
      this.#copy.isThere = false;
      const category = error instanceof UserError ? 'user' : 'server';
      return {
        outcome: { kind: 'failed', error: error instanceof Error ? error.message : String(error), category },
        state: null,
        records: [],
      };
    }
  }

  #finish(request: StoredRequest, { outcome, state }: Execution): void {
    const { seq, call } = request.record;
    this.#count(request, outcome);
    this.#store.writeDone({ seq, at: this.#around.now().toISOString(), ...(call && { call }) }, outcome, state);
    this.#waiters.notify(seq);
  }

  /** Before the journal has the result: a call that was answered is counted, also when we are killed in between. */
  #count(request: StoredRequest, outcome: Outcome): void {
    const { callLog, now } = this.#around;
    if (callLog === undefined) return;
    const { seq, operation, call } = request.record;
    callLog.add(trainingCall({ at: now(), model: this.model, seq, operation, call, body: () => this.#store.body(request), outcome }));
  }
}
