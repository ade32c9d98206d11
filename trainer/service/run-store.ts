import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { StateError, UserError } from './failures.ts';
import { Journal, type PayloadRef, syncFolder } from './journal.ts';
import type { Outcome } from './outcome.ts';
import { parseRunRecord, type RunRecord, type RunRecordOf } from './run-journal.ts';
import { type KeptResults, RunLedger, type StoredRequest, type StoredResult } from './run-ledger.ts';
import type { ModelState } from './threads/training-backend.ts';

/** A journal that has grown by this much since it was last rewritten is rewritten to what still matters. */
const COMPACT_AFTER_BYTES = 24 * 1024 * 1024;
/** All that are remembered at all. */
const ALL_RESULTS: KeptResults = { newest: Number.POSITIVE_INFINITY, unfetched: true };

/** One model's journal together with what it adds up to. */
export class RunStore {
  readonly ledger = new RunLedger();
  readonly #journal: Journal;
  #sizeAfterCompaction = 0;

  constructor(folder: string) {
    if (!existsSync(folder)) {
      mkdirSync(folder, { recursive: true });
      syncFolder(dirname(folder));
    }
    const path = join(folder, 'journal.log');
    this.#journal = Journal.open(path, ({ header, payload }) => this.ledger.add(parseRunRecord(path, header), payload));
  }

  get model(): RunRecordOf<'model'> {
    if (this.ledger.model === null) throw new StateError(`${this.#journal.path}: has no model record`);
    return this.ledger.model;
  }

  /** `durable` also waits for the disk. */
  write(record: RunRecord, payload?: Uint8Array, durable = false): void {
    this.ledger.add(record, this.#journal.append(record, payload, durable));
  }

  /** Writes that a call has ended; the model's new state, if any, is in the same record. */
  writeDone(call: Pick<RunRecordOf<'done'>, 'seq' | 'at' | 'call'>, outcome: Outcome, state: ModelState | null): void {
    const done = { record: 'done', ...call, outcome: withoutBytes(outcome) } as const;
    if (state === null) {
      this.write({ ...done, state: null }, outcome.kind === 'proto' ? outcome.bytes : undefined);
    } else {
      const payload = Buffer.concat([state.weights, state.optimizer]);
      this.write({ ...done, state: { weightsBytes: state.weights.length } }, payload);
    }
    if (this.#journal.sizeBytes > COMPACT_AFTER_BYTES + this.#sizeAfterCompaction) this.compact(ALL_RESULTS);
  }

  read(payload: PayloadRef): Uint8Array<ArrayBuffer> {
    return payload.length === 0 ? new Uint8Array() : this.#journal.read(payload);
  }

  /** What `writeDone` was given. */
  outcome({ record: { outcome }, payload }: StoredResult): Outcome {
    return outcome.kind === 'proto' ? { kind: 'proto', bytes: this.read(payload) } : outcome;
  }

  body(request: StoredRequest): Uint8Array {
    return this.read(request.payload);
  }

  /** The newest stored state. Throws UserError when the model's creation failed. */
  state(): ModelState {
    const stored = this.ledger.state;
    const weightsBytes = stored?.record.state?.weightsBytes;
    if (stored === null || weightsBytes === undefined) {
      throw new UserError(`model ${this.model.modelId} was not created: its creation failed`);
    }
    const bytes = this.read(stored.payload);
    return { weights: bytes.slice(0, weightsBytes), optimizer: bytes.slice(weightsBytes) };
  }

  /** Rewrites the journal to what still matters. */
  compact(kept: KeptResults): void {
    const records = this.ledger.live(kept).map(({ record, payload }) => ({ header: record, payload: this.read(payload) }));
    const { path } = this.#journal;
    const fresh: [RunRecord, PayloadRef][] = [];
    this.#journal.rewrite(records, ({ header, payload }) => fresh.push([parseRunRecord(path, header), payload]));
    this.ledger.reset(fresh);
    this.#sizeAfterCompaction = this.#journal.sizeBytes;
  }

  close(): void {
    this.#journal.close();
  }
}

/** The bytes are the record's payload. */
function withoutBytes(outcome: Outcome): RunRecordOf<'done'>['outcome'] {
  if (outcome.kind === 'proto') return { kind: 'proto' };
  return outcome.kind === 'json' ? { kind: 'json', value: { ...outcome.value } } : outcome;
}
