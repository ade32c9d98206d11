import type { PayloadRef } from './journal.ts';
import { RememberedResults } from './remembered-results.ts';
import type { CallIdentity, RunRecord, RunRecordOf } from './run-journal.ts';

export type StoredRequest = { readonly record: RunRecordOf<'request'>; readonly payload: PayloadRef };
export type StoredResult = { readonly record: RunRecordOf<'done'>; readonly payload: PayloadRef };

/** Which results outlive a rewriting of the journal: the newest so many, and those that nobody has fetched. */
export type KeptResults = { readonly newest: number; readonly unfetched: boolean };

/** The sum of a journal: where a model stands. */
export class RunLedger {
  #model: RunRecordOf<'model'> | null = null;
  readonly #requests = new Map<number, StoredRequest>();
  /** Only a result tells that its gradient was gathered, so it stays as long as that gradient counts. */
  readonly #results = new RememberedResults((seq) => this.#isGathered(seq));
  readonly checkpoints = new Map<string, RunRecordOf<'checkpoint'>>();
  /** Checkpoints that went because their time was over. */
  readonly expired = new Map<string, RunRecordOf<'checkpoint_removed'>>();
  #nextSeq = 0;
  #state: StoredResult | null = null;

  /** Forgets everything and adds up `records` instead: after the journal was rewritten. */
  reset(records: readonly (readonly [RunRecord, PayloadRef])[]): void {
    this.#requests.clear();
    this.#results.clear();
    this.checkpoints.clear();
    this.expired.clear();
    this.#model = null;
    this.#state = null;
    this.#nextSeq = 0;
    for (const [record, payload] of records) this.add(record, payload);
  }

  /** Forgets checkpoints whose time was over before that moment (ms since 1970). */
  forgetExpiredBefore(limitMs: number): void {
    for (const [key, { expiredAt }] of this.expired) if (Date.parse(expiredAt ?? '') < limitMs) this.expired.delete(key);
  }

  /** Takes in the next record of the journal. */
  add(record: RunRecord, payload: PayloadRef): void {
    switch (record.record) {
      case 'model':
        this.#model = record;
        return;
      case 'request':
        this.#requests.set(record.seq, { record, payload });
        return;
      case 'done':
        this.#finish({ record, payload });
        return;
      case 'checkpoint':
        this.checkpoints.set(checkpointKey(record.kind, record.name), record);
        this.expired.delete(checkpointKey(record.kind, record.name));
        return;
      case 'checkpoint_removed':
        this.checkpoints.delete(checkpointKey(record.kind, record.name));
        if (record.expiredAt !== null) this.expired.set(checkpointKey(record.kind, record.name), record);
        return;
    }
  }

  #finish(result: StoredResult): void {
    const { seq, state } = result.record;
    this.#nextSeq = Math.max(this.#nextSeq, seq + 1);
    if (state !== null) {
      this.#state = result;
      // Gradients gathered before this state are in it; their requests are not needed again.
      for (const known of this.#requests.keys()) if (known <= seq) this.#requests.delete(known);
    }
    this.#results.add(result);
  }

  /** Whether the call has added to gradients that no step has used yet. */
  #isGathered(seq: number): boolean {
    const operation = this.#requests.get(seq)?.record.operation;
    return operation?.op === 'forward_backward' && !operation.forwardOnly && this.#results.get(seq)?.record.outcome.kind === 'proto';
  }

  /** Null until the first record is in. */
  get model(): RunRecordOf<'model'> | null {
    return this.#model;
  }

  /** The number whose turn it is. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  /** The newest stored state of the model; null before its creation is done. */
  get state(): StoredResult | null {
    return this.#state;
  }

  get lastResult(): StoredResult | null {
    return this.#results.get(this.#nextSeq - 1);
  }

  request(seq: number): StoredRequest | null {
    return this.#requests.get(seq) ?? null;
  }

  /** What was asked for under a number, as far as it is remembered. */
  call(seq: number): CallIdentity | null {
    return this.#requests.get(seq)?.record.call ?? this.#results.get(seq)?.record.call ?? null;
  }

  result(seq: number): StoredResult | null {
    return this.#results.get(seq);
  }

  /** Takes note that a client was given a result: from now on it may be forgotten when many others have been fetched. */
  markFetched(seq: number): void {
    this.#results.markFetched(seq);
  }

  /** Done calls since the stored state that added to the gradients, in order: what must be done again to get the same gradients. */
  gradientRequests(): readonly StoredRequest[] {
    return [...this.#requests.values()].filter(({ record: { seq } }) => this.#isGathered(seq)).sort((a, b) => a.record.seq - b.record.seq);
  }

  /** Every record that still matters, with the results to keep, in an order that adds up to the same. */
  live({ newest, unfetched }: KeptResults): readonly { readonly record: RunRecord; readonly payload: PayloadRef }[] {
    const none: PayloadRef = { offset: 0, length: 0 };
    const gradients = new Set(this.gradientRequests());
    const requests = [...this.#requests.values()].filter((request) => request.record.seq >= this.#nextSeq || gradients.has(request));
    // A remembered result that is not the newest state keeps its answer and loses its state bytes.
    const gradientSeqs = new Set([...gradients].map((request) => request.record.seq));
    const isKept = (seq: number) => seq >= this.#nextSeq - newest || (unfetched && !this.#results.isFetched(seq)) || gradientSeqs.has(seq);
    const results = this.#results
      .all()
      .filter(({ record: { seq } }) => isKept(seq))
      .map((result) =>
        result.record.state === null || result === this.#state ? result : { record: { ...result.record, state: null }, payload: none },
      );
    const state = this.#state !== null && !results.includes(this.#state) ? [this.#state] : [];
    return [
      ...(this.#model === null ? [] : [{ record: this.#model, payload: none }]),
      ...[...this.checkpoints.values(), ...this.expired.values()].map((record) => ({ record, payload: none })),
      ...state,
      // Before the results: which of those must stay is known by the requests.
      ...requests,
      ...results.sort((a, b) => a.record.seq - b.record.seq),
    ];
  }
}

export const checkpointKey = (kind: string, name: string): string => `${kind}/${name}`;
