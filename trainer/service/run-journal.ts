import { z } from 'zod';
import { StateError } from './failures.ts';
import type { PayloadRef } from './journal.ts';

/** The records of one model's journal, and what they add up to. */

const loraSchema = z.object({
  rank: z.number().int().positive(),
  seed: z.number().int().nonnegative(),
  trainAttn: z.boolean(),
  trainMlp: z.boolean(),
});

const adamSchema = z.object({
  learningRate: z.number(),
  beta1: z.number(),
  beta2: z.number(),
  eps: z.number(),
  weightDecay: z.number(),
  gradClipNorm: z.number(),
});

const userMetadataSchema = z.record(z.string(), z.string()).nullable();

const operationSchema = z.discriminatedUnion('op', [
  /** Fresh adapters, as the model record says. */
  z.object({ op: z.literal('create') }),
  z.object({ op: z.literal('create_from'), path: z.string(), optimizer: z.boolean() }),
  /** The body is the record's payload. */
  z.object({ op: z.literal('forward_backward'), forwardOnly: z.boolean() }),
  z.object({ op: z.literal('optim_step'), adam: adamSchema }),
  z.object({
    op: z.literal('save_weights'),
    name: z.string(),
    overwrite: z.boolean(),
    ttlSeconds: z.number().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({
    op: z.literal('save_weights_for_sampler'),
    name: z.string(),
    /** Set when the caller wants a sampling session instead of a path. */
    samplerId: z.string().nullable(),
    ttlSeconds: z.number().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({ op: z.literal('load_weights'), path: z.string(), optimizer: z.boolean() }),
  /** A call of the right shape that cannot be carried out: it fails when its turn comes, and uses up its number. */
  z.object({ op: z.literal('refused'), error: z.string() }),
]);

const recordSchema = z.discriminatedUnion('record', [
  z.object({
    record: z.literal('model'),
    modelId: z.string(),
    sessionId: z.string(),
    /** Null until a create-via-load has read its checkpoint. */
    baseModel: z.string().nullable(),
    lora: loraSchema.nullable(),
    userMetadata: userMetadataSchema,
    createdAt: z.string(),
  }),
  z.object({ record: z.literal('request'), seq: z.number().int().nonnegative(), operation: operationSchema }),
  z.object({
    record: z.literal('done'),
    seq: z.number().int().nonnegative(),
    outcome: z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('json'), value: z.record(z.string(), z.unknown()) }),
      z.object({ kind: z.literal('proto') }),
      z.object({ kind: z.literal('failed'), error: z.string(), category: z.enum(['user', 'server']) }),
    ]),
    /** Set when the model is another one after this call: the payload is its weights (so many bytes), then its optimizer state. */
    state: z.object({ weightsBytes: z.number().int().positive() }).nullable(),
    at: z.string(),
  }),
  z.object({
    record: z.literal('checkpoint'),
    kind: z.enum(['weights', 'sampler_weights']),
    name: z.string(),
    seq: z.number().int(),
    time: z.string(),
    sizeBytes: z.number().int(),
    weightsSha256: z.string(),
    expiresAt: z.string().nullable(),
    userMetadata: userMetadataSchema,
  }),
  z.object({ record: z.literal('checkpoint_removed'), kind: z.enum(['weights', 'sampler_weights']), name: z.string() }),
]);

export type RunRecord = z.infer<typeof recordSchema>;
export type RunRecordOf<Kind extends RunRecord['record']> = Extract<RunRecord, { record: Kind }>;
export type Operation = z.infer<typeof operationSchema>;
export type OperationOf<Op extends Operation['op']> = Extract<Operation, { op: Op }>;

export type StoredRequest = { readonly record: RunRecordOf<'request'>; readonly payload: PayloadRef };
export type StoredResult = { readonly record: RunRecordOf<'done'>; readonly payload: PayloadRef };

export function parseRunRecord(path: string, header: unknown): RunRecord {
  const parsed = recordSchema.safeParse(header);
  if (!parsed.success) throw new StateError(`${path}: a record is of an unknown form: ${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

/** How many finished calls of a model are remembered for repeats and late polls. */
export const REMEMBERED_RESULTS = 1000;

/** The sum of a journal: where a model stands. */
export class RunLedger {
  #model: RunRecordOf<'model'> | null = null;
  readonly #requests = new Map<number, StoredRequest>();
  readonly #results = new Map<number, StoredResult>();
  readonly checkpoints = new Map<string, RunRecordOf<'checkpoint'>>();
  #nextSeq = 0;
  #state: StoredResult | null = null;

  /** Forgets everything and adds up `records` instead: after the journal was rewritten. */
  reset(records: readonly (readonly [RunRecord, PayloadRef])[]): void {
    this.#requests.clear();
    this.#results.clear();
    this.checkpoints.clear();
    this.#model = null;
    this.#state = null;
    this.#nextSeq = 0;
    for (const [record, payload] of records) this.add(record, payload);
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
        return;
      case 'checkpoint_removed':
        this.checkpoints.delete(checkpointKey(record.kind, record.name));
        return;
    }
  }

  #finish(result: StoredResult): void {
    const { seq, state } = result.record;
    this.#results.set(seq, result);
    this.#results.delete(seq - REMEMBERED_RESULTS);
    this.#nextSeq = Math.max(this.#nextSeq, seq + 1);
    if (state === null) return;
    this.#state = result;
    // Gradients gathered before this state are in it; their requests are not needed again.
    for (const known of this.#requests.keys()) if (known <= seq) this.#requests.delete(known);
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
    return this.#results.get(this.#nextSeq - 1) ?? null;
  }

  request(seq: number): StoredRequest | null {
    return this.#requests.get(seq) ?? null;
  }

  result(seq: number): StoredResult | null {
    return this.#results.get(seq) ?? null;
  }

  /** Done calls since the stored state that added to the gradients, in order: what must be done again to get the same gradients. */
  gradientRequests(): readonly StoredRequest[] {
    return [...this.#requests.values()]
      .filter(({ record: { seq, operation } }) => {
        const outcome = this.#results.get(seq)?.record.outcome;
        return operation.op === 'forward_backward' && !operation.forwardOnly && outcome?.kind === 'proto';
      })
      .sort((a, b) => a.record.seq - b.record.seq);
  }

  /** Every record that still matters, in an order that adds up to the same. */
  live(): readonly { readonly record: RunRecord; readonly payload: PayloadRef }[] {
    const none: PayloadRef = { offset: 0, length: 0 };
    const gradients = new Set(this.gradientRequests());
    const requests = [...this.#requests.values()].filter((request) => request.record.seq >= this.#nextSeq || gradients.has(request));
    // A remembered result that is not the newest state keeps its answer and loses its state bytes.
    const results = [...this.#results.values()].map((result) =>
      result.record.state === null || result === this.#state ? result : { record: { ...result.record, state: null }, payload: none },
    );
    const state = this.#state !== null && !results.includes(this.#state) ? [this.#state] : [];
    return [
      ...(this.#model === null ? [] : [{ record: this.#model, payload: none }]),
      ...[...this.checkpoints.values()].map((record) => ({ record, payload: none })),
      ...state,
      ...results.sort((a, b) => a.record.seq - b.record.seq),
      ...requests,
    ];
  }
}

export const checkpointKey = (kind: string, name: string): string => `${kind}/${name}`;
